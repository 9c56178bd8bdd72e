package import ZDCProtocol

/// The layout of the file that stores the hashes of a blob's Merkle tree.
///
/// It has the leaves' hashes, then the roots of all complete groups of 256 leaves, then those of 65,536. The file of a
/// blob that an older server completed has only the leaves' hashes.
package struct HashFile: Sendable {
  package static let groupBits: UInt64 = 8
  private static let levels = 3

  private let counts: [UInt64]

  package init(leafCount: UInt64) {
    counts = (0..<Self.levels).map { leafCount >> (UInt64($0) * Self.groupBits) }
  }

  package var leafBytes: UInt64 { counts[0] * 32 }
  package var bytes: UInt64 { counts.reduce(0, +) * 32 }
  package var topLevel: Int { Self.levels - 1 }

  package func count(level: Int) -> UInt64 { counts[level] }
  package func offset(level: Int, index: UInt64) -> UInt64 { (counts[..<level].reduce(0, +) + index) * 32 }
  package static func leaves(perHashAt level: Int) -> UInt64 { 1 << (UInt64(level) * groupBits) }
}

/// Computes the roots of a blob's Merkle subtrees from its stored hashes, the largest subtrees first. For the largest
/// content, a proof reads about 500 hashes.
package struct ContentProof {
  private let file: HashFile
  private let hasGroups: Bool
  private let read: (_ offset: UInt64, _ count: Int) throws -> [UInt8]

  /// - Parameters:
  ///   - storedBytes: the length of the file.
  ///   - read: reads bytes of the file.
  package init(leafCount: UInt64, storedBytes: UInt64, read: @escaping (UInt64, Int) throws -> [UInt8]) {
    file = HashFile(leafCount: leafCount)
    hasGroups = storedBytes == file.bytes
    self.read = read
  }

  /// Returns the ranges of the file that ``bytes(of:)`` will read.
  package static func ranges(
    of subtrees: [Range<UInt64>], leafCount: UInt64, storedBytes: UInt64
  ) throws -> [Range<UInt64>] {
    var ranges: [Range<UInt64>] = []
    let recorder = ContentProof(leafCount: leafCount, storedBytes: storedBytes) { offset, count in
      ranges.append(offset..<offset + UInt64(count))
      return [UInt8](repeating: 0, count: count)
    }
    _ = try recorder.bytes(of: subtrees)
    return ranges
  }

  /// Returns the roots of these subtrees, 32 bytes each.
  package func bytes(of subtrees: [Range<UInt64>]) throws -> [UInt8] {
    try subtrees.flatMap { try root(of: $0).bytes }
  }

  /// - Parameter subtree: a subtree of RFC 6962: it begins at a multiple of the power of two that it holds.
  package func root(of subtree: Range<UInt64>) throws -> MerkleHash {
    var builder = MerkleTree.Builder()
    var next = subtree.lowerBound
    for level in (hasGroups ? 0...file.topLevel : 0...0).reversed() {
      let size = HashFile.leaves(perHashAt: level)
      guard next % size == 0 else { continue }
      try append((subtree.upperBound - next) / size, from: next / size, level: level, to: &builder)
      next += (subtree.upperBound - next) / size * size
    }
    return builder.root
  }

  private static let batch: UInt64 = 8_192

  private func append(
    _ count: UInt64, from first: UInt64, level: Int, to builder: inout MerkleTree.Builder
  ) throws {
    var index = first
    while index < first + count {
      let batch = min(Self.batch, first + count - index)
      var reader = ByteReader(try read(file.offset(level: level, index: index), Int(batch) * 32))
      while reader.remaining > 0 {
        builder.append(root: try reader.read32(), leaves: HashFile.leaves(perHashAt: level))
      }
      index += batch
    }
  }
}

/// Group hashes, computed while the leaf hashes stream through.
package struct GroupHashes {
  private var builders: [MerkleTree.Builder]
  /// By level above the leaves.
  package private(set) var levels: [[UInt8]]

  package init() {
    let above = HashFile(leafCount: 0).topLevel
    builders = Array(repeating: MerkleTree.Builder(), count: above)
    levels = Array(repeating: [], count: above)
  }

  package mutating func append(leafHash: MerkleHash) {
    var hash = leafHash
    for level in builders.indices {
      builders[level].append(leafHash: hash)
      guard builders[level].count == 1 << HashFile.groupBits else { return }
      hash = builders[level].root
      levels[level] += hash.bytes
      builders[level] = MerkleTree.Builder()
    }
  }
}
