import Testing
import ZDCProtocol

/// RFC 6962, against the roots of the Certificate Transparency reference implementation and a naive recursion.
@Suite struct MerkleTreeTests {
  private static let leaves: [[UInt8]] = [
    [], [0x00], [0x10], [0x20, 0x21], [0x30, 0x31], Array(0x40...0x43), Array(0x50...0x57), Array(0x60...0x6f),
  ]
  private static let roots = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
  ]

  @Test(arguments: 0...8) func rootOfTheReferenceLeaves(count: Int) {
    let hashes = Self.leaves.prefix(count).map { MerkleTree.leafHash($0) }
    #expect(MerkleTree.root(leafHashes: hashes).description == Self.roots[count])
  }

  /// The definition, split at the largest power of two below the count.
  private func naiveRoot(_ hashes: ArraySlice<MerkleHash>) -> MerkleHash {
    guard hashes.count > 1, let first = hashes.first else { return hashes.first ?? MerkleTree.emptyRoot }
    _ = first
    var split = 1
    while split * 2 < hashes.count { split *= 2 }
    let middle = hashes.startIndex + split
    return MerkleTree.nodeHash(naiveRoot(hashes[..<middle]), naiveRoot(hashes[middle...]))
  }

  @Test func builderAgreesWithTheDefinitionAtEveryCount() {
    var generator = SeededGenerator(seed: 1)
    var builder = MerkleTree.Builder()
    var hashes: [MerkleHash] = []
    for count in 0...260 {
      #expect(builder.count == UInt64(count))
      #expect(builder.root == naiveRoot(hashes[...]))
      hashes.append(Samples.id32(&generator))
      builder.append(leafHash: hashes[count])
    }
  }

  @Test func aLeafMayArriveInSlices() {
    let leaf = Array("a leaf that arrives in three slices".utf8)
    var hasher = MerkleTree.LeafHasher()
    hasher.update(leaf[..<5])
    hasher.update(Array(leaf[5..<9]))
    leaf[9...].withUnsafeBytes { hasher.update(bufferPointer: $0) }
    #expect(hasher.finalize() == MerkleTree.leafHash(leaf))
    #expect(MerkleTree.leafHash(leaf) == MerkleHash(sha256: [0] + leaf))
  }

  /// Two leaves in the second part: its hash is computed from its bytes, and from the SHA-256 hashes of its leaves.
  @Test func aPartsHash_isThatOfItsLeafHashes() {
    let length = 130 * UInt64(ContentGeometry.leafBytes)
    let count = 2 * ContentGeometry.leafBytes - ContentGeometry.prefixBytes
    let part = (0..<count).map { UInt8(truncatingIfNeeded: $0 / 7) }
    #expect(ContentGeometry.partRange(1, cipherLength: length).count == part.count)
    let leaves = [part.prefix(ContentGeometry.leafBytes), part.dropFirst(ContentGeometry.leafBytes)]
    let hashes = leaves.flatMap { MerkleHash(sha256: [0] + $0).bytes }
    #expect(MerkleTree.partHash(part, part: 1, cipherLength: length) == MerkleHash(sha256: hashes).bytes)
    #expect(MerkleTree.partHash(part, part: 0, cipherLength: length) != MerkleHash(sha256: hashes).bytes)
  }

  @Test func aLeafIsNeverAnInnerNode() {
    let (left, right) = (MerkleTree.leafHash([1]), MerkleTree.leafHash([2]))
    #expect(MerkleTree.nodeHash(left, right) != MerkleTree.leafHash(left.bytes + right.bytes))
    #expect(MerkleTree.nodeHash(left, right) != MerkleTree.nodeHash(right, left))
  }
}
