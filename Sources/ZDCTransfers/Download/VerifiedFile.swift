internal import ZDCCrypto
internal import ZDCProtocol

/// A file of ciphertext that grows by verified leaves only. However the process ends, the file can be verified again
/// and is not fetched twice.
struct VerifiedFile: ~Copyable {
  private let file: LocalFile
  private let leaves: ContentLeaves
  private let cipherLength: UInt64
  private var nextLeaf: UInt64 = 0
  private var pending: [UInt8] = []
  /// Number of bytes taken. The last ones may still wait for the rest of their leaf.
  package private(set) var received: UInt64 = 0

  /// Takes over the existing bytes as far as they verify, and truncates the rest.
  package init(continuing file: LocalFile, leaves: ContentLeaves, layout: ContentLayout) throws {
    self.file = file
    self.leaves = leaves
    cipherLength = layout.cipherLength
    pending.reserveCapacity(ContentGeometry.firstLeafBytes)
    while nextLeaf < layout.leafCount {
      let bytes = try file.read(upTo: ContentGeometry.leafRange(nextLeaf, cipherLength: cipherLength).count)
      guard MerkleTree.leafHash(bytes) == leaves[nextLeaf] else { break }
      received += UInt64(bytes.count)
      nextLeaf += 1
    }
    try file.truncate(to: received)
  }

  /// - Throws: `contentHashMismatch`, `contentTrailingData`. No unverified bytes are written.
  package mutating func push(_ slice: [UInt8]) throws {
    var rest = slice[...]
    while !rest.isEmpty {
      let size = ContentGeometry.leafRange(nextLeaf, cipherLength: cipherLength).count
      try require(size > 0, .contentTrailingData)
      let taken = rest.prefix(size - pending.count)
      pending += taken
      received += UInt64(taken.count)
      rest = rest.dropFirst(taken.count)
      if pending.count == size { try writeLeaf() }
    }
  }

  private mutating func writeLeaf() throws {
    try require(MerkleTree.leafHash(pending) == leaves[nextLeaf], .contentHashMismatch)
    try file.write(pending)
    pending.removeAll(keepingCapacity: true)
    nextLeaf += 1
  }
}
