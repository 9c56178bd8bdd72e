package import ZDCProtocol

/// The store for large content: ciphertext and leaf hashes.
///
/// Contract: a finished part is durable; the file exists durably before its first part is acknowledged. The caller has
/// checked offsets and lengths. Calls about one part are not concurrent; calls about different parts may be.
///
/// Any function may throw ``BlobStoreFailure``, and those that write ``StorageFull``.
package protocol BlobStore: Sendable {
  /// Whether a part stays in memory until it is finished. The server then counts it as a body in memory.
  var buffersParts: Bool { get }
  /// Prepares for the parts of an upload whose ticket is new. A part may come without it, after a failure.
  func begin(_ blob: BlobID, cipherLength: UInt64) async throws
  /// Opens one part for writing, slice by slice.
  func openPart(_ blob: BlobID, index: Int, cipherLength: UInt64) async throws -> any BlobPartWriter
  /// Ends an upload whose parts are all present, and returns the Merkle root over all leaf hashes. Makes the hashes that
  /// proofs need durable. May be repeated, whatever the outcome was.
  ///
  /// - Throws: ``BlobLost`` if a part is missing.
  func contentRoot(_ blob: BlobID, cipherLength: UInt64) async throws -> ContentRoot
  /// Opens a range of a complete blob for reading.
  ///
  /// - Throws: ``BlobLost`` if nothing is stored, or if it ends before the range does.
  func open(_ blob: BlobID, range: Range<UInt64>) async throws -> any BlobReader
  /// Returns `count` leaf hashes from leaf `first`, 32 bytes each.
  ///
  /// - Throws: ``BlobLost`` if they are missing.
  func leafHashes(_ blob: BlobID, first: UInt64, count: Int) async throws -> [UInt8]
  /// Returns the roots of these RFC 6962 subtrees, 32 bytes each.
  ///
  /// - Throws: ``BlobLost`` if the hashes are missing.
  func proof(_ blob: BlobID, of subtrees: [Range<UInt64>], leafCount: UInt64) async throws -> [UInt8]
  /// Removes everything that is stored of these blobs. Blobs of which nothing is stored are no error.
  func remove(_ blobs: [BlobID]) async throws
  /// Checks whether the disk has room, by writing.
  ///
  /// - Throws: ``StorageFull`` if it does not.
  func probeFreeSpace() async throws
  /// Calls `body` with all blobs of which anything is stored, in batches. A blob may be in several batches.
  func forEachBatch(_ body: @Sendable ([BlobID]) async throws -> Void) async throws
}

extension BlobStore {
  package func begin(_ blob: BlobID, cipherLength: UInt64) async throws {}
}

/// A range of a blob that is being read by one task.
package protocol BlobReader: Sendable {
  /// Returns the next bytes, at most a few leaves, or nil after the last.
  ///
  /// - Throws: an error if the range ends too early.
  func next() async throws -> [UInt8]?
}

/// Stored content, or part of it, is missing.
package struct BlobLost: Error {
  package init() {}
}

/// The store cannot be used at the moment. The description goes to the log; it has no key and no ID.
package struct BlobStoreFailure: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

package protocol BlobPartWriter: Sendable {
  /// Writes the next bytes of the part, at most a few leaves at a time.
  func write(_ bytes: [UInt8]) async throws
  /// Makes the part and its leaf hashes durable, in place of any earlier attempt, and returns the part's hash (`MerkleTree.partHash`).
  func finish() async throws -> [UInt8]
  /// Abandons the part; the next attempt overwrites the bytes written so far.
  func abandon() async
}
