internal import ZDCProtocol

/// Hashes the leaves of an upload part while its bytes arrive in slices.
package struct PartHasher: Sendable {
  /// The hashes of the leaves that are whole, 32 bytes each.
  package private(set) var leafHashes: [UInt8] = []

  private let cipherLength: UInt64
  private var position: UInt64
  private var leaf: UInt64
  private var hasher = MerkleTree.LeafHasher()

  package init(index: Int, cipherLength: UInt64) {
    self.cipherLength = cipherLength
    leaf = UInt64(index) * ContentGeometry.leavesPerPart(cipherLength: cipherLength)
    position = ContentGeometry.partRange(index, cipherLength: cipherLength).lowerBound
  }

  package mutating func update(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let end = ContentGeometry.leafRange(leaf, cipherLength: cipherLength).upperBound
      let piece = rest.prefix(Int(end - position))
      hasher.update(piece)
      position += UInt64(piece.count)
      rest = rest.dropFirst(piece.count)
      if position == end { closeLeaf() }
    }
  }

  private mutating func closeLeaf() {
    leafHashes += hasher.finalize().bytes
    hasher = MerkleTree.LeafHasher()
    leaf += 1
  }
}
