package import ZDCProtocol

/// Copies large content from one store to another, and verifies every byte on the way.
package struct BlobCopy: Sendable {
  private static let pageFiles = 1_000

  private let rows: any RowSource
  private let source: any BlobStore
  private let target: any BlobStore
  private let deleted: Set<BlobID>

  /// - Parameters:
  ///   - rows: names the content.
  ///   - deleted: content that is left out.
  package init(
    of rows: any RowSource, from source: any BlobStore, to target: any BlobStore, leavingOut deleted: Set<BlobID> = []
  ) {
    (self.rows, self.source, self.target, self.deleted) = (rows, source, target, deleted)
  }

  /// Copies what the target does not have. Damaged content is left out, and the copy continues with the next.
  ///
  /// - Parameters:
  ///   - found: called with each blob that is damaged or missing in the source.
  ///   - progress: called after each blob, with the bytes so far.
  package func run(
    found: (BlobID, BlobProblem) throws -> Void, progress: (CopyProgress) throws -> Void
  ) async throws {
    var done = CopyProgress(phase: .content, done: 0, total: try await totalBytes())
    var last: BlobID?
    while true {
      let page = try await page(after: last)
      for file in page where file.root != nil && !deleted.contains(file.id) {
        try Task.checkCancellation()
        if let problem = try await copy(file) { try found(file.id, problem) }
        done.done += file.cipherLength
        try progress(done)
      }
      guard let end = page.last else { return }
      last = end.id
    }
  }

  private func page(after id: BlobID?) async throws -> [StoredFile] {
    try await rows.readRows { try $0.files(after: id, limit: Self.pageFiles) }
  }

  private func totalBytes() async throws -> UInt64 {
    var total: UInt64 = 0
    var page = try await page(after: nil)
    while let last = page.last {
      total += page.reduce(0) { $0 + ($1.root == nil ? 0 : $1.cipherLength) }
      page = try await self.page(after: last.id)
    }
    return total
  }

  private func copy(_ file: StoredFile) async throws -> BlobProblem? {
    // An earlier run may have copied it.
    if try await BlobCheck.problem(of: file, in: target) == nil { return nil }
    do { try await copyParts(of: file) } catch is BlobLost {
      try await target.remove([file.id])
      return try await BlobCheck.problem(of: file, in: source) ?? .missing
    }
    guard try await target.contentRoot(file.id, cipherLength: file.cipherLength) != file.root else { return nil }
    try await target.remove([file.id])
    return try await BlobCheck.problem(of: file, in: source) ?? .root
  }

  private func copyParts(of file: StoredFile) async throws {
    for index in 0..<ContentGeometry.partCount(cipherLength: file.cipherLength) {
      let range = ContentGeometry.partRange(index, cipherLength: file.cipherLength)
      let reader = try await source.open(file.id, range: range)
      let writer = try await target.openPart(file.id, index: index, cipherLength: file.cipherLength)
      do {
        while let bytes = try await reader.next() { try await writer.write(bytes) }
        _ = try await writer.finish()
      } catch {
        await writer.abandon()
        throw error
      }
    }
  }
}
