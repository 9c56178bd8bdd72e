package import Foundation
package import ZDCProtocol
internal import ZDCSupport

/// The folder beside the database that keeps unfinished files of ciphertext, named by their blobs.
package struct PartialFolder: Sendable {
  private static let keptFor: TimeInterval = 7 * 24 * 3_600
  private static let sliceBytes = 1 << 20

  package let url: URL

  /// Opens the file of a blob, new or as an earlier attempt left it. Returns nil while another transfer holds it.
  package func open(_ blob: BlobID) throws -> (url: URL, file: LocalFile)? {
    try create()
    let file = file(blob)
    guard let opened = try LocalFile.resume(file) else { return nil }
    try takeOver(blob, into: opened)
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

  // MARK: Bytes of other downloads

  /// Moves a file that the system has fetched into this folder. It holds the rest of a blob from `offset` on. The next
  /// transfer of the blob takes it over and verifies it with the rest.
  package func leave(_ more: URL, of blob: BlobID, from offset: UInt64) throws {
    try create()
    try LocalFile.rename(more, to: url.appendingPathComponent("\(blob.text).\(offset)", isDirectory: false))
  }

  private func takeOver(_ blob: BlobID, into file: LocalFile) throws {
    let names: [String]
    do {
      names = try FileManager.default.contentsOfDirectory(atPath: url.path)
    } catch { throw ZDCError(.fileFailure, underlying: error) }
    for name in names where name.hasPrefix("\(blob.text).") {
      let more = url.appendingPathComponent(name, isDirectory: false)
      defer { DownloadFolder.remove(more) }
      guard let offset = UInt64(name.dropFirst(blob.text.count + 1)), try file.size() >= offset else { continue }
      let source = try LocalFile.read(more)
      // The existing bytes are either verified or truncated, so the longer version is the better guess.
      guard try offset + source.size() > file.size() else { continue }
      try source.seekToStart()
      try file.truncate(to: offset)
      while case let slice = try source.read(upTo: Self.sliceBytes), !slice.isEmpty { try file.write(slice) }
    }
    try file.seekToStart()
  }
}
