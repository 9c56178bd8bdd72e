internal import ZDCCrypto
internal import ZDCProtocol

/// A file of ciphertext that grows by verified leaves only. However the process ends, the file can be verified again
/// and is not fetched twice.
struct VerifiedFile: ~Copyable {
  private static let sliceBytes = 1 << 20

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

  /// Takes bytes that the system fetched, as far as they continue this file and verify.
  package mutating func absorb(_ left: PartialFolder.Left) throws {
    guard left.range.contains(received) else { return }
    let source = try LocalFile.read(left.url)
    do {
      while left.range.contains(received), received < cipherLength {
        let count = Int(min(UInt64(Self.sliceBytes), left.range.upperBound - received))
        try push(try source.read(at: received - left.offset, count: count))
      }
    } catch is ZDCSecurityError {
      // Not evidence against the server: the file may have been damaged on this device. The network has the bytes.
      received -= UInt64(pending.count)
      pending.removeAll(keepingCapacity: true)
    }
  }

  private mutating func writeLeaf() throws {
    try require(MerkleTree.leafHash(pending) == leaves[nextLeaf], .contentHashMismatch)
    try file.write(pending)
    pending.removeAll(keepingCapacity: true)
    nextLeaf += 1
  }
}
