internal import GRDB
package import ZDCProtocol
package import ZDCServer

/// The large content that the database of a folder names, read without changing the folder.
package final class FolderFiles: StoredFileList {
  private let queue: DatabaseQueue

  /// - Throws: ``StoreOpenError``.
  package convenience init(path: String) throws { try self.init(database: path + "/zdc.sqlite") }

  init(database path: String) throws {
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    do { queue = try DatabaseQueue(path: path, configuration: configuration) } catch {
      throw StoreOpenError(error, path: path)
    }
  }

  package func files(after id: BlobID?, limit: Int) async throws -> [StoredFile] {
    try await read { try $0.files(after: id, limit: limit) }
  }

  package func knownFiles(_ ids: [BlobID]) async throws -> Set<BlobID> {
    try await read { try $0.knownFiles(ids) }
  }

  private func read<T: Sendable>(_ body: @escaping @Sendable (SQLiteRows) throws -> T) async throws -> T {
    try await queue.read { db in
      let transaction = SQLiteTransaction(db)
      defer { transaction.invalidate() }
      return try body(SQLiteRows(transaction))
    }
  }
}
