// Proofs that some leaves are those of a root, without the other leaves (PROTOCOL 3.0).

extension MerkleTree {
  /// The sub-trees whose roots prove `leaves`, as ranges of leaves, left to right: the largest that hold none of them.
  ///
  /// At most two for each level of the tree and each range.
  ///
  /// - Parameter leaves: ascending ranges that do not overlap.
  public static func proofSubtrees(leafCount: UInt64, leaves: [Range<UInt64>]) -> [Range<UInt64>] {
    guard leafCount > 0, isValid(leaves, leafCount: leafCount) else { return [] }
    var subtrees: [Range<UInt64>] = []
    collect(0..<leafCount, without: leaves, into: &subtrees)
    return subtrees
  }

  private static func collect(
    _ subtree: Range<UInt64>, without leaves: [Range<UInt64>], into subtrees: inout [Range<UInt64>]
  ) {
    guard leaves.contains(where: { $0.overlaps(subtree) }) else { return subtrees.append(subtree) }
    // Inside a range there is nothing to collect.
    let isInside = leaves.contains { $0.lowerBound <= subtree.lowerBound && subtree.upperBound <= $0.upperBound }
    guard !isInside else { return }
    let middle = split(subtree)
    collect(subtree.lowerBound..<middle, without: leaves, into: &subtrees)
    collect(middle..<subtree.upperBound, without: leaves, into: &subtrees)
  }

  /// The root that these leaves and the proof make together. It says nothing until it was compared with a known one.
  ///
  /// - Parameters:
  ///   - leaves: ascending ranges that do not overlap.
  ///   - leafHashes: one for each of these leaves, in order.
  ///   - proof: the roots of ``proofSubtrees(leafCount:leaves:)``, in order.
  /// - Returns: nil if there are more or fewer hashes than that, or `leaves` is not inside the tree.
  public static func root(
    leafCount: UInt64, leaves: [Range<UInt64>], leafHashes: [MerkleHash], proof: [MerkleHash]
  ) -> MerkleHash? {
    guard leafCount > 0, isValid(leaves, leafCount: leafCount) else { return nil }
    var named: UInt64 = 0
    for range in leaves { named += range.upperBound - range.lowerBound }
    guard named == UInt64(leafHashes.count) else { return nil }
    var rest = ProofRest(leaves: leaves, leafHashes: leafHashes[...], proof: proof[...])
    guard let root = rest.root(of: 0..<leafCount), rest.isUsedUp else { return nil }
    return root
  }

  private static func isValid(_ leaves: [Range<UInt64>], leafCount: UInt64) -> Bool {
    var end: UInt64 = 0
    for range in leaves {
      guard range.lowerBound >= end, range.upperBound <= leafCount else { return false }
      end = range.upperBound
    }
    return true
  }

  /// Where RFC 6962 splits a tree of at least two leaves: behind the largest power of two below their number.
  fileprivate static func split(_ subtree: Range<UInt64>) -> UInt64 {
    let count = subtree.upperBound - subtree.lowerBound
    return subtree.lowerBound + 1 << UInt64(63 - (count - 1).leadingZeroBitCount)
  }
}

/// What of a proof has not been used yet.
private struct ProofRest {
  let leaves: [Range<UInt64>]
  var leafHashes: ArraySlice<MerkleHash>
  var proof: ArraySlice<MerkleHash>

  var isUsedUp: Bool { leafHashes.isEmpty && proof.isEmpty }

  mutating func root(of subtree: Range<UInt64>) -> MerkleHash? {
    guard leaves.contains(where: { $0.overlaps(subtree) }) else { return proof.popFirst() }
    guard subtree.upperBound - subtree.lowerBound > 1 else { return leafHashes.popFirst() }
    let middle = MerkleTree.split(subtree)
    guard let left = root(of: subtree.lowerBound..<middle), let right = root(of: middle..<subtree.upperBound) else {
      return nil
    }
    return MerkleTree.nodeHash(left, right)
  }
}
