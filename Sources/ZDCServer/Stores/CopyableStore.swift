package import ZDCProtocol

/// A metadata store that can hand over everything that it has, and can be filled with what another one had.
///
/// From ``StoredRowWriter/beginFilling(from:)`` to ``StoredRowWriter/finishFilling(lastEnvelope:)`` the store is not one
/// that a server can use: it opens only in order to be filled further.
package protocol CopyableStore: MetadataStore, RowSource {
  /// Runs `body` in one transaction, which is durable when the call returns. No server may use the store.
  func fill<T: Sendable>(_ body: @escaping @Sendable (any StoredRowWriter) throws -> T) async throws -> T
}

/// A source of all rows of a store.
package protocol RowSource: Sendable {
  /// Runs `body` on one consistent state. Another call may see a later one.
  func readRows<T: Sendable>(_ body: @escaping @Sendable (any StoredRowReader) throws -> T) async throws -> T
}

/// Reads a store row by row.
package protocol StoredRowReader {
  /// Returns rows in the order of their keys, at most `limit`.
  ///
  /// - Parameter key: that of the last row that the caller has; nil for the first rows.
  func rows(of table: StoredTable, after key: [StoredValue]?, limit: Int) throws -> [StoredRow]
  /// Returns the key of the last row; nil for an empty table.
  func lastKey(of table: StoredTable) throws -> [StoredValue]?
  /// Returns the number of rows, for the progress.
  func count(of table: StoredTable) throws -> UInt64
  /// Returns the highest number that an envelope ever had: it is never given again.
  func lastEnvelope() throws -> Int64
  /// Returns large content in the order of its ids, each once however many nodes have it.
  func files(after id: BlobID?, limit: Int) throws -> [StoredFile]
  /// Returns those of these ids that rows name as large content.
  func knownFiles(_ ids: [BlobID]) throws -> Set<BlobID>
}

/// Fills an empty store.
package protocol StoredRowWriter: StoredRowReader {
  /// Marks an empty store as one that is being filled. Does nothing if it is being filled from this source already.
  ///
  /// - Throws: ``StoreNotEmpty``.
  func beginFilling(from source: [UInt8]) throws
  /// Inserts rows that come after those of the table so far. Rows that contradict what the store has are left out.
  ///
  /// - Returns: why rows were left out.
  func insert(_ rows: [StoredRow], into table: StoredTable) throws -> [StoredDamage]
  /// Computes what the rows do not say, and makes the store one that a server can use.
  func finishFilling(lastEnvelope: Int64) throws
}

/// Says which large content the rows of a store name.
package protocol StoredFileList: Sendable {
  /// Returns content in the order of the ids.
  func files(after id: BlobID?, limit: Int) async throws -> [StoredFile]
  func knownFiles(_ ids: [BlobID]) async throws -> Set<BlobID>
}

/// The large content of a store that is open.
package struct OpenStoreFiles: StoredFileList {
  private let store: any RowSource

  package init(_ store: any RowSource) { self.store = store }

  package func files(after id: BlobID?, limit: Int) async throws -> [StoredFile] {
    try await store.readRows { try $0.files(after: id, limit: limit) }
  }

  package func knownFiles(_ ids: [BlobID]) async throws -> Set<BlobID> {
    try await store.readRows { try $0.knownFiles(ids) }
  }
}

/// Large content as the rows describe it.
package struct StoredFile: Sendable, Hashable {
  package var id: BlobID
  package var cipherLength: UInt64
  /// Nil while the content is being uploaded.
  package var root: ContentRoot?

  package init(id: BlobID, cipherLength: UInt64, root: ContentRoot?) {
    (self.id, self.cipherLength, self.root) = (id, cipherLength, root)
  }
}

/// A row that contradicts itself, or others. The detail has no user data.
package struct StoredDamage: Error, Sendable, Hashable {
  package var table: StoredTable
  package var node: NodeID?
  package var detail: String

  package init(_ table: StoredTable, node: NodeID? = nil, _ detail: String) {
    (self.table, self.node, self.detail) = (table, node, detail)
  }
}

/// A store that is to be filled has data of its own, or of another source.
package struct StoreNotEmpty: Error {
  package init() {}
}
