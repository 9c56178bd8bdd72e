internal import ZDCCrypto
internal import ZDCProtocol

/// A file of ciphertext that grows by verified leaves only: whatever ends the process, what is in it can be checked
/// again and is not fetched twice.
struct VerifiedFile: ~Copyable {
  private let file: LocalFile
  private let leaves: ContentLeaves
  private let cipherLength: UInt64
  private var nextLeaf: UInt64 = 0
  private var pending: [UInt8] = []
  /// Bytes taken, the last of which may still wait for the rest of their leaf.
  package private(set) var received: UInt64 = 0

  /// Takes what is in the file already, as far as it is true, and cuts the rest off.
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

  /// - Throws: `contentHashMismatch`, `contentTrailingData`; nothing false is written.
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
