internal import ZDCProtocol

/// Computes the inner hashes of a content's Merkle tree from its stored leaf hashes, a batch at a time.
struct ContentProof: Sendable {
  private static let batch: UInt64 = 8_192

  let blob: BlobID
  let blobs: any BlobStore

  /// The roots of these sub-trees, 32 bytes each.
  func bytes(of subtrees: [Range<UInt64>]) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for subtree in subtrees { bytes += try await root(of: subtree).bytes }
    return bytes
  }

  private func root(of subtree: Range<UInt64>) async throws -> MerkleHash {
    var builder = MerkleTree.Builder()
    var next = subtree.lowerBound
    while next < subtree.upperBound {
      let count = min(Self.batch, subtree.upperBound - next)
      let hashes = try await blobs.leafHashes(blob, first: next, count: Int(count))
      var reader = ByteReader(hashes)
      while reader.remaining > 0 { builder.append(leafHash: try reader.read32()) }
      next += count
    }
    return builder.root
  }
}
