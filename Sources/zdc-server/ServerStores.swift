import ZDCServer
import ZDCServerPostgres
import ZDCServerSQLite

/// The stores that the command line names.
struct ServerStores {
  let metadata: any MetadataStore
  let blobs: any BlobStore
  /// Holds the lock of the data folder.
  private let folder: any AnyObject & Sendable

  /// - Parameter database: the URL of a PostgreSQL database; nil for SQLite in the data folder.
  /// - Throws: ``Failure``.
  init(data: String, database: String?, blobs options: BlobOptions) async throws {
    do {
      let content: ContentFolder
      if let database {
        guard database.hasPrefix("postgres://") || database.hasPrefix("postgresql://") else {
          throw Failure(.usage, "--database takes a URL, such as postgres://zdc@db.example.org/zdc")
        }
        content = try ContentFolder(path: data, database: .elsewhere)
        (metadata, folder) = (try PostgresStore(url: database), content)
      } else {
        let folder = try DataFolder(path: data)
        (metadata, self.folder, content) = (folder.metadata, folder, folder.content)
      }
      blobs = try await options.store(beside: content)
    } catch let error as StoreOpenError {
      throw Failure(error)
    } catch let error as PostgresOpenError {
      throw Failure(error)
    }
  }
}

extension Failure {
  init(_ error: PostgresOpenError) {
    message = error.description
    switch error.reason {
    case .missingLibrary: (status, hint) = (.unavailable, "on Debian and Ubuntu: apt-get install libpq5")
    case .inUse: (status, hint) = (.unavailable, "stop the other server: one process at a time uses a database")
    case .newer: (status, hint) = (.damagedData, "run the newer version of zdc-server")
    case .unavailable: (status, hint) = (.unavailable, "check the URL, and that PostgreSQL accepts this user")
    case .other: (status, hint) = (.software, nil)
    }
  }
}
