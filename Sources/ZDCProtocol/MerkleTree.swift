internal import Crypto

package enum MerkleRole {}
/// A leaf or inner hash of an RFC 6962 tree.
package typealias MerkleHash = Bytes32<MerkleRole>

/// The Merkle tree of RFC 6962 over SHA-256: content, zone state and commit logs use it (PROTOCOL 3.0).
package enum MerkleTree {
  /// The root of a tree without leaves.
  package static var emptyRoot: MerkleHash { MerkleHash(sha256: EmptyCollection<UInt8>()) }

  package static func leafHash(_ leaf: some Collection<UInt8>) -> MerkleHash {
    var hasher = LeafHasher()
    hasher.update(leaf)
    return hasher.finalize()
  }

  package static func nodeHash(_ left: MerkleHash, _ right: MerkleHash) -> MerkleHash {
    var block = ByteWriter(capacity: 65)
    block.append(UInt8(1))
    block.append(left)
    block.append(right)
    return MerkleHash(sha256: block.bytes)
  }

  package static func root(leafHashes: some Sequence<MerkleHash>) -> MerkleHash {
    var builder = Builder()
    for hash in leafHashes { builder.append(leafHash: hash) }
    return builder.root
  }

  /// Hashes one leaf that arrives in slices.
  package struct LeafHasher: Sendable {
    private var hash = SHA256()

    package init() {
      withUnsafeBytes(of: UInt8(0)) { hash.update(bufferPointer: $0) }
    }

    package mutating func update(_ slice: some Collection<UInt8>) {
      hash.update(slice)
    }

    package mutating func update(bufferPointer: UnsafeRawBufferPointer) {
      hash.update(bufferPointer: bufferPointer)
    }

    package func finalize() -> MerkleHash {
      MerkleHash(digest: hash.finalize())
    }
  }

  /// Returns the hash of an upload part: SHA-256 over its leaf hashes, which both sides need anyway (PROTOCOL 3.8).
  package static func partHash(leafHashes: some Collection<UInt8>) -> [UInt8] {
    MerkleHash(sha256: leafHashes).bytes
  }

  /// Returns the hash of a part whose bytes are available.
  package static func partHash(_ bytes: [UInt8], part index: Int, cipherLength: UInt64) -> [UInt8] {
    partHash(leafHashes: leafHashes(bytes, part: index, cipherLength: cipherLength))
  }

  /// Returns the hashes of a part's leaves, 32 bytes each.
  package static func leafHashes(_ bytes: [UInt8], part index: Int, cipherLength: UInt64) -> [UInt8] {
    var leaf = UInt64(max(index, 0)) * ContentGeometry.leavesPerPart(cipherLength: cipherLength)
    var rest = bytes[...]
    var hashes: [UInt8] = []
    while !rest.isEmpty {
      let range = ContentGeometry.leafRange(leaf, cipherLength: cipherLength)
      let bytes = range.isEmpty ? rest : rest.prefix(range.count)
      hashes += leafHash(bytes).bytes
      rest = rest.dropFirst(bytes.count)
      leaf += 1
    }
    return hashes
  }

  /// Appends leaves in order and holds one hash per complete subtree, so memory grows with the logarithm of the count.
  package struct Builder: Sendable {
    /// Roots of complete subtrees, largest first. Bit k of `count` is set if one of 2^k leaves is among them.
    private var complete: [MerkleHash] = []
    package private(set) var count: UInt64 = 0

    package init() {}

    package mutating func append(leafHash: MerkleHash) {
      var hash = leafHash
      var covered = count
      while covered & 1 == 1, let left = complete.popLast() {
        hash = MerkleTree.nodeHash(left, hash)
        covered >>= 1
      }
      complete.append(hash)
      count += 1
    }

    /// Appends a complete subtree of 2^k leaves, which must not be larger than the ones before it.
    package mutating func append(root: MerkleHash, leaves: UInt64) {
      precondition(leaves.nonzeroBitCount == 1 && count % leaves == 0, "a sub-tree begins at a multiple of its size")
      var hash = root
      var covered = count / leaves
      while covered & 1 == 1, let left = complete.popLast() {
        hash = MerkleTree.nodeHash(left, hash)
        covered >>= 1
      }
      complete.append(hash)
      count += leaves
    }

    package var root: MerkleHash {
      guard var hash = complete.last else { return MerkleTree.emptyRoot }
      for left in complete.dropLast().reversed() { hash = MerkleTree.nodeHash(left, hash) }
      return hash
    }
  }
}
