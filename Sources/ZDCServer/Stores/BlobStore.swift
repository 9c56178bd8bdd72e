package import ZDCProtocol

/// Where the server keeps large content: the ciphertext and its leaf hashes.
///
/// Contract: a finished part is durable; the file exists durably before its first part is acknowledged. Offsets and
/// lengths were checked
/// by the caller. Calls about one part are not concurrent; calls about different parts may be.
package protocol BlobStore: Sendable {
  /// Writes one part in place, slice by slice.
  func openPart(_ blob: BlobID, index: Int, cipherLength: UInt64) async throws -> any BlobPartWriter
  /// The Merkle root over all leaf hashes of a blob whose parts are all there. Makes durable what proofs will need.
  func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot
  /// How many bytes are stored, in one piece from the first; less than the content's length if it was damaged.
  ///
  /// - Throws: ``BlobLost`` if there is nothing.
  func storedBytes(_ blob: BlobID) async throws -> UInt64
  func read(_ blob: BlobID, range: Range<UInt64>) async throws -> [UInt8]
  /// `count` leaf hashes from leaf `first`, 32 bytes each.
  ///
  /// - Throws: ``BlobLost`` if they are not there (any more).
  func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8]
  /// The roots of these sub-trees of RFC 6962, 32 bytes each.
  ///
  /// - Throws: ``BlobLost`` if the hashes are not there (any more).
  func proof(_ blob: BlobID, of subtrees: [Range<UInt64>], leafCount: UInt64) async throws -> [UInt8]
  func remove(_ blob: BlobID) async throws
  /// Finds out by writing whether there is room.
  ///
  /// - Throws: ``StorageFull``.
  func takeRoom() async throws
  /// All blobs that have a file.
  func all() async throws -> [BlobID]
}

/// A stored content, or a part of it, is not where it was put.
package struct BlobLost: Error {
  package init() {}
}

package protocol BlobPartWriter: Sendable {
  /// The next bytes of the part; at most a few leaves at a time.
  func write(_ bytes: [UInt8]) async throws
  /// Makes the part and its leaf hashes durable; returns the part's hash (`MerkleTree.partHash`).
  func finish() async throws -> [UInt8]
  /// Gives up; what was written is overwritten by the next attempt.
  func abandon() async
}
