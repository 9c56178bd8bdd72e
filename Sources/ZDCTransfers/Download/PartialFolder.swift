package import Foundation
package import ZDCProtocol
internal import ZDCSupport

/// The folder beside the database that keeps unfinished files of ciphertext, named by their blobs.
package struct PartialFolder: Sendable {
  private static let keptFor: TimeInterval = 7 * 24 * 3_600
  package let url: URL

  package init(url: URL) {
    self.url = url
  }

  /// Opens the file of a blob, new or as an earlier attempt left it. Returns nil while another transfer holds it.
  package func open(_ blob: BlobID) throws -> (url: URL, file: LocalFile)? {
    try create()
    let file = file(blob)
    guard let opened = try LocalFile.resume(file) else { return nil }
    return (file, opened)
  }

  /// Returns the size of a blob's unfinished file in bytes, which are not yet verified.
  package func size(_ blob: BlobID) throws -> UInt64 {
    let file = file(blob)
    guard FileManager.default.fileExists(atPath: file.path) else { return 0 }
    return try LocalFile.read(file).size()
  }

  private func file(_ blob: BlobID) -> URL { url.appendingPathComponent(blob.text, isDirectory: false) }

  private func create() throws {
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try removeForgotten()
    } catch { throw ZDCError(.fileFailure, underlying: error) }
  }

  /// Removes old files: content that was replaced or deleted is never requested again.
  private func removeForgotten() throws {
    let files = try FileManager.default.contentsOfDirectory(
      at: url, includingPropertiesForKeys: [.contentModificationDateKey])
    for file in files {
      guard let modified = modification(of: file), modified.timeIntervalSinceNow < -Self.keptFor else { continue }
      DownloadFolder.remove(file)
    }
  }

  /// Returns nil for a file that disappeared after the folder was listed: another transfer has finished it.
  private func modification(of file: URL) -> Date? {
    do {
      return try file.resourceValues(forKeys: [.contentModificationDateKey]).contentModificationDate
    } catch { return nil }
  }

  // MARK: Bytes that the system fetched

  /// A file with a part of a blob's ciphertext. Its bytes are not yet verified.
  package struct Left: Sendable {
    package let url: URL
    package let offset: UInt64
    package let size: UInt64

    package var range: Range<UInt64> { offset..<offset + size }
  }

  /// Moves a file that the system has fetched into this folder. It holds bytes of a blob from `offset` on. The next
  /// transfer of the blob takes it over and verifies it.
  package func leave(_ more: URL, of blob: BlobID, from offset: UInt64) throws {
    try leave(more, name: "\(blob.text).\(offset)")
  }

  /// Moves a proof for leaves of a blob into this folder.
  package func leave(_ proof: URL, of blob: BlobID, leaves: Range<UInt64>) throws {
    try leave(proof, name: Self.proofName(blob, leaves))
  }

  private func leave(_ file: URL, name: String) throws {
    try create()
    try LocalFile.rename(file, to: self.url.appendingPathComponent(name, isDirectory: false))
  }

  private static func proofName(_ blob: BlobID, _ leaves: Range<UInt64>) -> String {
    "\(blob.text).proof-\(leaves.lowerBound)-\(leaves.upperBound)"
  }

  /// Returns the files that the system fetched of a blob, by ascending offset.
  package func left(of blob: BlobID) throws -> [Left] {
    guard FileManager.default.fileExists(atPath: url.path) else { return [] }
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: url.path)
    } catch { throw ZDCError(.fileFailure, underlying: error) }
    return try names.filter { $0.hasPrefix("\(blob.text).") }.compactMap { name in
      guard let offset = UInt64(name.dropFirst(blob.text.count + 1)) else { return nil }
      let file = url.appendingPathComponent(name, isDirectory: false)
      return Left(url: file, offset: offset, size: try LocalFile.read(file).size())
    }.sorted { $0.offset < $1.offset }
  }

  /// Returns a range of a blob, or nil unless one file of the system's holds all of it.
  package func bytes(of blob: BlobID, _ range: Range<UInt64>) throws -> [UInt8]? {
    guard let left = try left(of: blob).first(where: { range.clamped(to: $0.range) == range }) else { return nil }
    let file = try LocalFile.read(left.url)
    return try file.read(at: range.lowerBound - left.offset, count: range.count)
  }

  /// Returns the proof for leaves of a blob if the system fetched it.
  package func proof(of blob: BlobID, leaves: Range<UInt64>) throws -> [UInt8]? {
    let file = url.appendingPathComponent(Self.proofName(blob, leaves), isDirectory: false)
    guard FileManager.default.fileExists(atPath: file.path) else { return nil }
    return try LocalFile.read(file).read(upTo: Limits.leafProofBytes)
  }

  /// Removes the files that hold ranges of a blob, because they are used or do not verify.
  package func removeLeft(of blob: BlobID, where isOver: (Range<UInt64>) -> Bool = { _ in true }) throws {
    for left in try left(of: blob) where isOver(left.range) { DownloadFolder.remove(left.url) }
  }

  package func removeProof(of blob: BlobID, leaves: Range<UInt64>) {
    DownloadFolder.remove(url.appendingPathComponent(Self.proofName(blob, leaves), isDirectory: false))
  }
}
