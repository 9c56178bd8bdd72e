package import ZDCProtocol
package import ZDCServer

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A check of stores that are not files in a data folder: a database elsewhere, and large content in any store. Changes
/// nothing in them.
package struct StoreCheck {
  private static let pageFiles = 1_000

  private let found: (CheckFinding) -> Void
  private let progress: (CheckProgress) -> Void

  package init(
    found: @escaping (CheckFinding) -> Void = { _ in }, progress: @escaping (CheckProgress) -> Void = { _ in }
  ) {
    (self.found, self.progress) = (found, progress)
  }

  /// Verifies everything but large content. The rows are copied into a temporary SQLite database, which takes about as
  /// much room as they do where they are, and is then checked like that of a data folder.
  ///
  /// - Throws: ``StoreOpenError`` if the temporary folder has no room.
  package func check(_ store: any RowSource) async throws -> CheckReport {
    let folder = FileManager.default.temporaryDirectory.path + "/zdc-check-\(BlobID.random().text)"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    // A temporary folder that stays is the system's to remove.
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let copied = try await copy(store, to: folder)
    for finding in copied { found(finding) }
    var report = try DataFolder.check(path: folder, files: false, found: found, progress: progress)
    for finding in copied { report.add(finding) }
    return report
  }

  private func copy(_ store: any RowSource, to folder: String) async throws -> [CheckFinding] {
    let scratch = try SQLiteStore(path: folder + "/zdc.sqlite", filling: true)
    let copy = StoreCopy(from: store, to: scratch)
    progress(CheckProgress(phase: .copy, done: 0, total: 0))
    let damage = try await copy.copyRows()
    try await copy.finish()
    try await scratch.close()
    return damage.map(CheckFinding.init)
  }

  /// Verifies large content that is in `blobs`, and looks for blobs that no row names.
  ///
  /// - Parameter files: the content that the rows name.
  package func checkFiles(
    _ files: any StoredFileList, in blobs: any BlobStore, report: inout CheckReport
  ) async throws {
    report.elsewhere = 0
    var last: BlobID?
    while true {
      let page = try await files.files(after: last, limit: Self.pageFiles)
      for file in page where file.root != nil {
        if let problem = try await BlobCheck.problem(of: file, in: blobs) {
          add(CheckFinding(problem, of: file.id), to: &report)
        }
        report.contentBytes += file.cipherLength
        progress(CheckProgress(phase: .content, done: report.contentBytes, total: 0))
      }
      guard let end = page.last else { break }
      last = end.id
    }
    for id in try await orphans(in: blobs, files) {
      add(CheckFinding(.orphanFile, [.blob(id)], "stored content that nothing names"), to: &report)
    }
  }

  private func orphans(in blobs: any BlobStore, _ files: any StoredFileList) async throws -> [BlobID] {
    let orphans = Orphans()
    try await blobs.forEachBatch { batch in
      await orphans.add(Set(batch).subtracting(try await files.knownFiles(batch)))
    }
    return await orphans.found.sorted()
  }

  private func add(_ finding: CheckFinding, to report: inout CheckReport) {
    report.add(finding)
    found(finding)
  }
}

extension CheckFinding {
  package init(_ damage: StoredDamage) {
    self.init(.database, damage.node.map { [.node($0)] } ?? [], "\(damage.table.rawValue): \(damage.detail)")
  }

  package init(_ problem: BlobProblem, of blob: BlobID) {
    switch problem {
    case .missing: self.init(.blobFileMissing, [.blob(blob)], "the content is missing")
    case .leaf(let leaf):
      self.init(.blobFile, [.blob(blob), .number("leaf", leaf)], "the bytes do not match the stored leaf hash")
    case .root: self.init(.blobFile, [.blob(blob)], "the content does not match its root hash")
    case .groups: self.init(.blobFile, [.blob(blob)], "the stored hashes of groups do not match the leaves")
    }
  }
}

private actor Orphans {
  private(set) var found: Set<BlobID> = []

  func add(_ blobs: Set<BlobID>) { found.formUnion(blobs) }
}
