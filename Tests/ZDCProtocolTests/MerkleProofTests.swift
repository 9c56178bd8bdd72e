import Testing
import ZDCProtocol

/// Proofs of some leaves: every range of every small tree, and every way to falsify one.
@Suite struct MerkleProofTests {
  private struct Tree {
    let hashes: [MerkleHash]
    let root: MerkleHash

    init(_ count: Int) {
      var generator = SeededGenerator(seed: UInt64(count))
      hashes = (0..<count).map { _ in Samples.id32(&generator) }
      root = MerkleTree.root(leafHashes: hashes)
    }

    func proof(_ leaves: [Range<UInt64>]) -> [MerkleHash] {
      MerkleTree.proofSubtrees(leafCount: UInt64(hashes.count), leaves: leaves).map(root(of:))
    }

    func root(of leaves: Range<UInt64>) -> MerkleHash {
      MerkleTree.root(leafHashes: hashes[Int(leaves.lowerBound)..<Int(leaves.upperBound)])
    }

    func leafHashes(_ leaves: [Range<UInt64>]) -> [MerkleHash] {
      leaves.flatMap { hashes[Int($0.lowerBound)..<Int($0.upperBound)] }
    }

    func isProven(_ leaves: [Range<UInt64>], _ leafHashes: [MerkleHash], _ proof: [MerkleHash]) -> Bool {
      let made = MerkleTree.root(
        leafCount: UInt64(hashes.count), leaves: leaves, leafHashes: leafHashes, proof: proof)
      return made == root
    }
  }

  @Test(arguments: 1...70) func everyRangeIsProvenByItsHashes(count: Int) {
    let tree = Tree(count)
    var roots: [Range<UInt64>: MerkleHash] = [:]
    var unproven: [Range<UInt64>] = []
    for start in 0..<UInt64(count) {
      for end in start + 1...UInt64(count) {
        let proof = MerkleTree.proofSubtrees(leafCount: UInt64(count), leaves: [start..<end]).map { range in
          let root = roots[range] ?? tree.root(of: range)
          roots[range] = root
          return root
        }
        if !tree.isProven([start..<end], tree.leafHashes([start..<end]), proof) { unproven.append(start..<end) }
      }
    }
    #expect(unproven == [])
  }

  @Test(arguments: [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17]) func noOtherHashesProveARange(count: Int) {
    let tree = Tree(count)
    var accepted: [String] = []
    for start in 0..<UInt64(count) {
      for end in start + 1...UInt64(count) {
        let leaves = [start..<end]
        let (hashes, proof) = (tree.leafHashes(leaves), tree.proof(leaves))
        for (what, hashes, proof) in Self.forgeries(hashes, proof) where tree.isProven(leaves, hashes, proof) {
          accepted.append("\(what) of \(start)..<\(end)")
        }
      }
    }
    #expect(accepted == [])
  }

  private static func forgeries(
    _ hashes: [MerkleHash], _ proof: [MerkleHash]
  ) -> [(String, [MerkleHash], [MerkleHash])] {
    func flipped(_ all: [MerkleHash], _ index: Int) -> [MerkleHash] {
      var changed = all
      changed[index] = MerkleTree.leafHash(changed[index].bytes)
      return changed
    }
    var forgeries = [
      ("a hash more", hashes, proof + [.zero]), ("a leaf more", hashes + [.zero], proof),
      ("a leaf less", Array(hashes.dropLast()), proof),
    ]
    if !proof.isEmpty { forgeries.append(("a hash less", hashes, Array(proof.dropLast()))) }
    forgeries += proof.indices.map { ("hash \($0)", hashes, flipped(proof, $0)) }
    forgeries += hashes.indices.map { ("leaf \($0)", flipped(hashes, $0), proof) }
    return forgeries
  }

  /// The first leaf and a distant range, as a reader requests them.
  @Test(arguments: [2, 3, 8, 9, 21]) func twoRangesShareOneProof(count: Int) {
    let tree = Tree(count)
    for start in 1..<UInt64(count) {
      for end in start + 1...UInt64(count) {
        let leaves = [0..<1, start..<end]
        let (hashes, proof) = (tree.leafHashes(leaves), tree.proof(leaves))
        #expect(tree.isProven(leaves, hashes, proof))
      }
    }
  }

  /// Correct hashes at another position prove nothing.
  @Test func aProofHoldsForItsPlaceOnly() {
    let tree = Tree(13)
    let hashes = tree.leafHashes([3..<5])
    for start in UInt64(0)...11 where start != 3 {
      #expect(!tree.isProven([start..<start + 2], hashes, tree.proof([3..<5])))
      #expect(!tree.isProven([start..<start + 2], hashes, tree.proof([start..<start + 2])))
    }
  }

  @Test func theSubTreesAreTheOnesOfTheDocument() {
    #expect(MerkleTree.proofSubtrees(leafCount: 7, leaves: [2..<3]) == [0..<2, 3..<4, 4..<7])
    #expect(MerkleTree.proofSubtrees(leafCount: 7, leaves: [0..<1, 5..<6]) == [1..<2, 2..<4, 4..<5, 6..<7])
    #expect(MerkleTree.proofSubtrees(leafCount: 7, leaves: [0..<7]) == [])
    #expect(MerkleTree.proofSubtrees(leafCount: 1, leaves: [0..<1]) == [])
  }

  @Test func senselessRangesAndHostileCountsAreNoProof() {
    let tree = Tree(5)
    let hostile: [[Range<UInt64>]] = [
      [5..<6], [4..<6], [0..<UInt64.max], [UInt64.max - 1..<UInt64.max], [2..<3, 1..<2], [0..<2, 1..<3],
    ]
    for leaves in hostile {
      #expect(MerkleTree.proofSubtrees(leafCount: 5, leaves: leaves) == [])
      #expect(MerkleTree.root(leafCount: 5, leaves: leaves, leafHashes: tree.hashes, proof: []) == nil)
    }
    for count in [UInt64(0), 1 << 62, .max] {
      let proof = [MerkleHash](repeating: .zero, count: 200)
      #expect(MerkleTree.root(leafCount: count, leaves: [3..<4], leafHashes: [.zero], proof: proof) == nil)
      #expect(MerkleTree.proofSubtrees(leafCount: count, leaves: [3..<4]).count <= 64)
    }
  }

  @Test func theLargestContentsProofIsSmall() {
    let length = Limits.contentCipherBytes
    let leaves = ContentGeometry.leafCount(cipherLength: length)
    for first in [UInt64(0), 1, 2, leaves / 3, leaves / 2, leaves - 2] {
      let proven = ContentGeometry.provenLeaves(from: first, count: 2, cipherLength: length)
      let hashes = MerkleTree.proofSubtrees(leafCount: leaves, leaves: proven).count
      #expect(hashes * 32 <= Limits.leafProofBytes)
    }
  }

  @Test func aProofsRangeIsClampedToTheContent() {
    let length: UInt64 = 65_656 + 9 * 65_600
    func proven(_ from: UInt64, _ count: UInt64) -> [Range<UInt64>] {
      ContentGeometry.provenLeaves(from: from, count: count, cipherLength: length)
    }
    #expect(proven(0, 1) == [0..<1])
    #expect(proven(1, 2) == [0..<3])
    #expect(proven(4, 2) == [0..<1, 4..<6])
    #expect(proven(4, .max) == [0..<1, 4..<10])
    #expect(proven(.max, .max) == [0..<1])
    #expect(proven(5, 0) == [0..<1])
  }
}
