public import ZDCProtocol

/// Verified leaf hashes of a content: all of them, or those of some leaves.
public struct ContentLeaves: Sendable {
  /// The hashes that are known, in the order of their leaves.
  public let hashes: [MerkleHash]
  private let leaves: [Range<UInt64>]

  /// Checks the hashes that the server gave against the root in the record. A content of one leaf needs none: its root
  /// is the leaf's hash.
  ///
  /// - Throws: `contentHashMismatch`.
  public init(_ hashes: [MerkleHash] = [], for reference: ContentReference) throws(ZDCSecurityError) {
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

  /// The same from their concatenation, as a bundle carries it.
  public init(bytes: some Collection<UInt8>, for reference: ContentReference) throws(ZDCSecurityError) {
    let isComplete = UInt64(bytes.count) == reference.layout.leafCount * 32
    try require(isComplete || bytes.isEmpty, .contentHashMismatch)
    try self.init(Self.hashes(in: bytes), for: reference)
  }

  /// Checks the hashes of some leaves, and the proof that the server gave for them, against the root in the record.
  ///
  /// - Parameters:
  ///   - leaves: ascending ranges that do not overlap.
  ///   - proof: the concatenated roots of `MerkleTree.proofSubtrees`.
  /// - Throws: `contentHashMismatch`.
  public init(
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

  /// The hash of a leaf, nil if it is not among the known ones.
  public subscript(leaf: UInt64) -> MerkleHash? {
    var before = 0
    for range in leaves {
      if range.contains(leaf) { return hashes[before + Int(leaf - range.lowerBound)] }
      before += range.count
    }
    return nil
  }
}
