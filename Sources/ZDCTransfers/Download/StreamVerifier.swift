package import ZDCCrypto
package import ZDCProtocol

/// Hashes ciphertext as it passes and compares the result with the root in the verified record. Pure.
package struct StreamVerifier {
  private let reference: ContentReference
  private var hashes: [MerkleHash] = []
  private var hasher = MerkleTree.LeafHasher()
  /// Where the current leaf ends.
  private var leafEnd: UInt64
  package private(set) var received: UInt64 = 0

  package init(_ reference: ContentReference) {
    self.reference = reference
    leafEnd = ContentGeometry.leafRange(0, cipherLength: reference.layout.cipherLength).upperBound
    hashes.reserveCapacity(Int(clamping: reference.layout.leafCount))
  }

  package var isComplete: Bool { received == reference.layout.cipherLength }

  /// - Throws: `contentTrailingData` if there are more bytes than the record says.
  package mutating func push(_ bytes: some Collection<UInt8>) throws(ZDCSecurityError) {
    let total = reference.layout.cipherLength
    try require(UInt64(bytes.count) <= total - received, .contentTrailingData)
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = rest.prefix(Int(leafEnd - received))
      hasher.update(part)
      received += UInt64(part.count)
      rest = rest.dropFirst(part.count)
      if received == leafEnd { endLeaf() }
    }
  }

  private mutating func endLeaf() {
    hashes.append(hasher.finalize())
    hasher = MerkleTree.LeafHasher()
    leafEnd =
      ContentGeometry.leafRange(
        UInt64(hashes.count), cipherLength: reference.layout.cipherLength
      ).upperBound
  }

  /// Returns the hashes of all leaves, now verified.
  ///
  /// - Throws: `contentTruncated`, `contentHashMismatch`.
  package func finish() throws(ZDCSecurityError) -> ContentLeaves {
    try require(isComplete, .contentTruncated)
    return try ContentLeaves(hashes, for: reference)
  }
}
