// Proofs that some leaves belong to a root, without the other leaves (PROTOCOL 3.0).

extension MerkleTree {
  /// Returns the subtrees whose roots prove `leaves`, as ranges of leaves from left to right. They are the largest
  /// subtrees that contain none of those leaves.
  ///
  /// There are at most two per level of the tree and range.
  ///
  /// - Parameter leaves: Ascending ranges that do not overlap.
  package static func proofSubtrees(leafCount: UInt64, leaves: [Range<UInt64>]) -> [Range<UInt64>] {
    guard leafCount > 0, isValid(leaves, leafCount: leafCount) else { return [] }
    var subtrees: [Range<UInt64>] = []
    collect(0..<leafCount, without: leaves, into: &subtrees)
    return subtrees
  }

  private static func collect(
    _ subtree: Range<UInt64>, without leaves: [Range<UInt64>], into subtrees: inout [Range<UInt64>]
  ) {
    guard leaves.contains(where: { $0.overlaps(subtree) }) else { return subtrees.append(subtree) }
    // A subtree inside a range has nothing to collect.
    let isInside = leaves.contains { $0.lowerBound <= subtree.lowerBound && subtree.upperBound <= $0.upperBound }
    guard !isInside else { return }
    let middle = split(subtree)
    collect(subtree.lowerBound..<middle, without: leaves, into: &subtrees)
    collect(middle..<subtree.upperBound, without: leaves, into: &subtrees)
  }

  /// Computes the root from these leaves and the proof. It proves nothing until it is compared with a known root.
  ///
  /// - Parameters:
  ///   - leaves: Ascending ranges that do not overlap.
  ///   - leafHashes: One hash for each of these leaves, in order.
  ///   - proof: The roots of ``proofSubtrees(leafCount:leaves:)``, in order.
  /// - Returns: nil if the number of hashes is wrong, or `leaves` is not inside the tree.
  package static func root(
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

  /// Returns where RFC 6962 splits a tree of at least two leaves: after the largest power of two below their number.
  fileprivate static func split(_ subtree: Range<UInt64>) -> UInt64 {
    let count = subtree.upperBound - subtree.lowerBound
    return subtree.lowerBound + 1 << UInt64(63 - (count - 1).leadingZeroBitCount)
  }
}

/// The part of a proof that is not used yet.
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
