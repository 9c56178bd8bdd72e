internal import Foundation
internal import ZDCProtocol

/// Where files of ciphertext wait that were not fetched to their end: beside the database, named by their blobs.
struct PartialFolder: Sendable {
  private static let keptFor: TimeInterval = 7 * 24 * 3_600

  let url: URL

  /// The file of a blob, new or as an earlier try left it; nil while another transfer has it.
  func open(_ blob: BlobID) throws -> (url: URL, file: LocalFile)? {
    do {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try removeForgotten()
    } catch { throw ZDCError(.fileFailure, underlying: error) }
    let file = url.appendingPathComponent(blob.text, isDirectory: false)
    return try LocalFile.resume(file).map { (file, $0) }
  }

  /// Content that was replaced or deleted meanwhile is never asked for again.
  private func removeForgotten() throws {
    let files = try FileManager.default.contentsOfDirectory(
      at: url, includingPropertiesForKeys: [.contentModificationDateKey])
    for file in files {
      let modified = try file.resourceValues(forKeys: [.contentModificationDateKey]).contentModificationDate
      guard let modified, modified.timeIntervalSinceNow < -Self.keptFor else { continue }
      DownloadFolder.remove(file)
    }
  }
}
