import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// Proofs out of the stored hashes of groups are those out of the leaves, and read little.
@Suite struct ContentProofTests {
  /// The hash file of content with that many leaves.
  private static func file(leaves: UInt64) -> (bytes: [UInt8], hashes: [MerkleHash]) {
    let hashes = (0..<leaves).map { leaf in MerkleTree.leafHash(withUnsafeBytes(of: leaf) { [UInt8]($0) }) }
    var groups = GroupHashes()
    for hash in hashes { groups.append(leafHash: hash) }
    return (hashes.flatMap(\.bytes) + groups.levels.flatMap { $0 }, hashes)
  }

  private static func proof(
    _ file: [UInt8], leaves: UInt64, of range: Range<UInt64>, stored: UInt64? = nil
  ) throws -> (bytes: [UInt8], read: Int) {
    var read = 0
    let proof = ContentProof(leafCount: leaves, storedBytes: stored ?? UInt64(file.count)) { offset, count in
      read += count
      return Array(file[Int(offset)..<Int(offset) + count])
    }
    let subtrees = MerkleTree.proofSubtrees(leafCount: leaves, leaves: [range])
    return (try proof.bytes(of: subtrees), read / 32)
  }

  @Test(arguments: [1, 2, 255, 256, 257, 511, 512, 1_000, 65_535, 65_536, 65_537, 70_001] as [UInt64])
  func proofsOutOfGroups_areThoseOutOfLeaves(leaves: UInt64) throws {
    let (file, hashes) = Self.file(leaves: leaves)
    #expect(file.count == HashFile(leafCount: leaves).bytes)
    var builder = MerkleTree.Builder()
    for hash in hashes { builder.append(leafHash: hash) }
    for leaf in Set([0, leaves / 3, leaves / 2, leaves - 1]) {
      let (proof, read) = try Self.proof(file, leaves: leaves, of: leaf..<leaf + 1)
      let slow = try Self.proof(file, leaves: leaves, of: leaf..<leaf + 1, stored: leaves * 32)
      #expect(proof == slow.bytes)
      #expect(slow.read == leaves - 1)
      #expect(read <= 800, "\(read) hashes for leaf \(leaf)")
      var reader = ByteReader(proof)
      var parts: [MerkleHash] = []
      while reader.remaining > 0 { parts.append(try reader.read32()) }
      let root = MerkleTree.root(
        leafCount: leaves, leaves: [leaf..<leaf + 1], leafHashes: [hashes[Int(leaf)]], proof: parts)
      #expect(root == builder.root)
    }
  }

  /// The geometry of the largest content: the bytes that a proof reads do not grow with it.
  @Test func proofOfTheLargestContent_readsHundredsOfHashes() throws {
    let leaves = ContentGeometry.leafCount(cipherLength: Limits.contentCipherBytes)
    let stored = HashFile(leafCount: leaves).bytes
    var most = 0
    for leaf in [0, 1, leaves / 2 - 1, leaves / 2, leaves - 1] {
      var read = 0
      let proof = ContentProof(leafCount: leaves, storedBytes: stored) { offset, count in
        #expect(offset + UInt64(count) <= stored)
        read += count / 32
        return [UInt8](repeating: 0, count: count)
      }
      _ = try proof.bytes(of: MerkleTree.proofSubtrees(leafCount: leaves, leaves: [leaf..<leaf + 1]))
      most = max(most, read)
    }
    #expect(most <= 800)
  }

  @Test func valuesThatJSONCannotHold_areAnError() {
    #expect(throws: (any Error).self) { try JSONLine.text(["ratio": Double.infinity]) }
  }
}
