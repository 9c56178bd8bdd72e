package import ZDCProtocol

/// Verified leaf hashes of content, either of all leaves or of some.
package struct ContentLeaves: Sendable {
  /// The known hashes, in the order of their leaves.
  package let hashes: [MerkleHash]
  private let leaves: [Range<UInt64>]

  /// Checks the hashes from the server against the root in the record. Content of one leaf needs no hashes, because its
  /// root is the leaf's hash.
  ///
  /// - Throws: `contentHashMismatch`.
  package init(_ hashes: [MerkleHash] = [], for reference: ContentReference) throws(ZDCSecurityError) {
    let root = MerkleHash(reinterpreting: reference.content.contentRoot)
    let count = reference.layout.leafCount
    leaves = [0..<count]
    guard count > 1 || !hashes.isEmpty else {
      self.hashes = [root]
      return
    }
    let isComplete = UInt64(hashes.count) == count
    try require(isComplete && MerkleTree.root(leafHashes: hashes) == root, .contentHashMismatch)
    self.hashes = hashes
  }

  /// Checks concatenated hashes, as a bundle carries them, against the root in the record.
  package init(bytes: some Collection<UInt8>, for reference: ContentReference) throws(ZDCSecurityError) {
    let isComplete = UInt64(bytes.count) == reference.layout.leafCount * 32
    try require(isComplete || bytes.isEmpty, .contentHashMismatch)
    try self.init(Self.hashes(in: bytes), for: reference)
  }

  /// Checks the hashes of some leaves, and the server's proof for them, against the root in the record.
  ///
  /// - Parameters:
  ///   - leaves: Ascending ranges that do not overlap.
  ///   - proof: The concatenated roots of `MerkleTree.proofSubtrees`.
  /// - Throws: `contentHashMismatch`.
  package init(
    _ hashes: [MerkleHash], of leaves: [Range<UInt64>], proof: some Collection<UInt8>, for reference: ContentReference
  ) throws(ZDCSecurityError) {
    try require(proof.count.isMultiple(of: 32) && proof.count <= Limits.leafProofBytes, .contentHashMismatch)
    let root = MerkleTree.root(
      leafCount: reference.layout.leafCount, leaves: leaves, leafHashes: hashes, proof: try Self.hashes(in: proof))
    let expected = MerkleHash(reinterpreting: reference.content.contentRoot)
    try require(root == expected, .contentHashMismatch)
    self.hashes = hashes
    self.leaves = leaves
  }

  private static func hashes(in bytes: some Collection<UInt8>) throws(ZDCSecurityError) -> [MerkleHash] {
    var reader = ByteReader(Array(bytes))
    var hashes: [MerkleHash] = []
    hashes.reserveCapacity(bytes.count / 32)
    while reader.remaining > 0 { hashes.append(try reader.read32()) }
    return hashes
  }

  /// Returns the hash of a leaf; nil if it is not known.
  package subscript(leaf: UInt64) -> MerkleHash? {
    var before = 0
    for range in leaves {
      if range.contains(leaf) { return hashes[before + Int(leaf - range.lowerBound)] }
      before += range.count
    }
    return nil
  }
}
