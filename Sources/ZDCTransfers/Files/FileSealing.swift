package import Foundation
internal import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol

/// Seals any source into a new file, slice by slice, under a fresh key.
package struct FileSealing {
  /// Receives the number of cleartext bytes read so far. Throws to stop.
  package typealias Meter = (UInt64) throws -> Void

  package let source: ContentSource
  package var metadata: [UInt8] = []
  package var thumbnail: [UInt8] = []
  package let format: ZDCCryptoFileFormat

  /// - Throws: also `ZDCError` with `fileModifiedDuringRead`. No file remains after an error.
  package func write(to url: URL, _ meter: Meter) throws -> ZDCCryptoFile {
    let sealer = try ContentSealer(metadata: metadata, thumbnail: thumbnail, dataSize: source.size)
    return try Self.write(sealer, format, to: url) { leaves in
      var reader = try source.open()
      var done: UInt64 = 0
      while let slice = try reader.next() {
        try sealer.push(slice, emit: leaves.take)
        done += UInt64(slice.count)
        try meter(done)
      }
      try source.checkUnchanged()
    }
  }

  /// - Parameter body: pushes the data into the sealer.
  package static func write(
    _ sealer: ContentSealer, _ format: ZDCCryptoFileFormat, to url: URL,
    _ body: (_ leaves: LeafFile) throws -> Void
  ) throws -> ZDCCryptoFile {
    let leaves = LeafFile(try LocalFile.create(url))
    do {
      try body(leaves)
      let content = try sealer.finish(dataVersion: 1, emit: leaves.take)
      let reference = try ContentReference(content: content, secrets: sealer.secrets)
      return ZDCCryptoFile(
        fileURL: url, reference: reference, leaves: try ContentLeaves(leaves.hashes, for: reference),
        fileFormat: format)
    } catch {
      DownloadFolder.remove(url)
      throw translated(error)
    }
  }
}

/// A file that sealed leaves are appended to as they arrive, with their hashes.
package final class LeafFile {
  private let file: LocalFile
  package private(set) var hashes: [MerkleHash] = []

  package init(_ file: LocalFile) {
    self.file = file
  }

  package func take(_ leaf: SealedLeaf) throws {
    hashes.append(leaf.hash)
    try file.write(leaf.bytes)
  }
}

extension ContentSource {
  /// - Throws: `ZDCError` with `fileFailure`.
  package static func cleartextFile(_ url: URL) throws -> ContentSource { .file(try FileSource(url: url)) }
}
