package import ZDCProtocol

/// The store for large content: ciphertext and leaf hashes.
///
/// Contract: a finished part is durable; the file exists durably before its first part is acknowledged. The caller has
/// checked offsets and lengths. Calls about one part are not concurrent; calls about different parts may be.
package protocol BlobStore: Sendable {
  /// Opens one part for writing in place, slice by slice.
  func openPart(_ blob: BlobID, index: Int, cipherLength: UInt64) async throws -> any BlobPartWriter
  /// Returns the Merkle root over all leaf hashes of a blob whose parts are all present. Makes the hashes that proofs
  /// need durable.
  func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot
  /// Returns the number of contiguous bytes stored from the first; less than the content's length if the file is
  /// damaged.
  ///
  /// - Throws: ``BlobLost`` if nothing is stored.
  func storedBytes(_ blob: BlobID) async throws -> UInt64
  func read(_ blob: BlobID, range: Range<UInt64>) async throws -> [UInt8]
  /// Returns `count` leaf hashes from leaf `first`, 32 bytes each.
  ///
  /// - Throws: ``BlobLost`` if they are missing.
  func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8]
  /// Returns the roots of these RFC 6962 subtrees, 32 bytes each.
  ///
  /// - Throws: ``BlobLost`` if the hashes are missing.
  func proof(_ blob: BlobID, of subtrees: [Range<UInt64>], leafCount: UInt64) async throws -> [UInt8]
  func remove(_ blob: BlobID) async throws
  /// Checks whether the disk has room, by writing.
  ///
  /// - Throws: ``StorageFull`` if it does not.
  func probeFreeSpace() async throws
  /// Returns all blobs that have a file.
  func all() async throws -> [BlobID]
}

/// Stored content, or part of it, is missing.
package struct BlobLost: Error {
  package init() {}
}

package protocol BlobPartWriter: Sendable {
  /// Writes the next bytes of the part, at most a few leaves at a time.
  func write(_ bytes: [UInt8]) async throws
  /// Makes the part and its leaf hashes durable, and returns the part's hash (`MerkleTree.partHash`).
  func finish() async throws -> [UInt8]
  /// Abandons the part; the next attempt overwrites the bytes written so far.
  func abandon() async
}
