import ZDCServer
import ZDCServerPostgres
import ZDCServerS3
import ZDCServerSQLite

/// Where a server's data is: its folder, and what the options name besides.
struct StorePlace {
  enum Use {
    /// Stores that do not exist are created.
    case serve
    case existing
    /// New stores, or stores that an earlier run has begun to fill.
    case fill
  }

  var data: String
  /// The URL of a PostgreSQL database; nil for SQLite in the data folder.
  var database: String?
  var blobs: BlobPlace

  /// The list of deletions, unless the server is given another one.
  var deletions: DeletionFile { DeletionFile(path: "\(data)/\(DeletionFile.defaultName)") }

  /// - Throws: ``Failure``.
  func open(_ use: Use) async throws -> ServerStores {
    try await Failure.translating { try await openStores(use) }
  }

  private func openStores(_ use: Use) async throws -> ServerStores {
    if let database { return try await openDatabase(database, use) }
    if use == .existing, !DataFolder.exists(data) { throw StoreOpenError(.missing, path: data) }
    let folder = try DataFolder(path: data, filling: use == .fill)
    let store =
      use == .existing
      ? try await blobs.existingStore(beside: folder.content) : try await blobs.store(beside: folder.content)
    return ServerStores(metadata: folder.metadata, blobs: store, folder: folder)
  }

  /// Servers whose large content is in a bucket share the database.
  private func openDatabase(_ url: String, _ use: Use) async throws -> ServerStores {
    guard url.hasPrefix("postgres://") || url.hasPrefix("postgresql://") else {
      throw Failure(.usage, "--database takes a URL, such as postgres://zdc@db.example.org/zdc")
    }
    let folder = try ContentFolder(path: data, database: .elsewhere)
    let isShared = use == .serve && blobs.address != nil
    // A check and the source of a copy stay as they are: older servers may still use them.
    let database = try PostgresStore(url: url, isShared: isShared, updating: use != .existing, filling: use == .fill)
    let store = try await SharedBucket(database: database, folder: folder, place: blobs).open(use)
    return ServerStores(metadata: database, blobs: store, folder: folder, database: database)
  }
}

/// The stores that the command line names.
struct ServerStores {
  let metadata: any CopyableStore
  let blobs: any BlobStore
  /// Holds the lock of the data folder.
  fileprivate let folder: any AnyObject & Sendable
  /// Nil for SQLite in the data folder.
  private let database: PostgresStore?

  fileprivate init(
    metadata: any CopyableStore, blobs: any BlobStore, folder: any AnyObject & Sendable, database: PostgresStore? = nil
  ) {
    (self.metadata, self.blobs, self.folder, self.database) = (metadata, blobs, folder, database)
  }

  /// Begins the coordination with other servers over the database; nil for SQLite.
  ///
  /// - Throws: ``Failure``.
  func coordination(_ settings: Configuration) async throws -> (any ServerCoordination)? {
    try await Failure.translating {
      try database.map { database in
        try PostgresCoordination(
          database, holdMs: settings.bounds.commitHoldMs, followsDatabaseTime: database.isShared)
      }
    }
  }
}

extension Failure {
  /// Runs `body`, and describes the errors of stores for the person at the terminal.
  static func translating<T>(_ body: () async throws -> T) async throws -> T {
    do { return try await body() } catch let error as StoreOpenError {
      throw Failure(error)
    } catch let error as PostgresOpenError {
      throw Failure(error)
    } catch let error as S3OpenError {
      throw Failure(error)
    } catch let error as BlobStoreFailure {
      throw Failure(.unavailable, error.description)
    } catch let error as BackupFailure {
      throw Failure(error)
    } catch is StorageFull {
      throw Failure(.cannotCreate, "there is no space left")
    } catch let failure as Failure {
      throw failure
    } catch { throw Failure(.unavailable, "a store failed: \(type(of: error))", hint: "run the command again") }
  }

  init(_ error: BackupFailure) {
    switch error.reason {
    case .notEmpty: self.init(.cannotCreate, error.description, hint: "give an empty folder, or one with a backup")
    case .damaged: self.init(.damagedData, error.description)
    case .missing:
      self.init(
        .noInput, error.description, hint: "name the folder that zdc-server backup was given, or run that again")
    case .full:
      self.init(
        .cannotCreate, error.description, hint: "make room and run the command again: it continues with the content")
    case .contentMissing:
      self.init(.damageFound, error.description, hint: "run the command again; zdc-server check finds damage")
    }
  }

  init(_ error: PostgresOpenError) {
    message = error.description
    switch error.reason {
    case .missingLibrary: (status, hint) = (.unavailable, "on Debian and Ubuntu: apt-get install libpq5")
    case .inUse:
      status = .unavailable
      hint = "stop the other server, or keep large content in a bucket: with --blobs, servers share a database"
    case .newer: (status, hint) = (.damagedData, "run the newer version of zdc-server")
    case .missing: (status, hint) = (.noInput, "check the URL; zdc-server serve creates the tables")
    case .unavailable: (status, hint) = (.unavailable, "check the URL, and that PostgreSQL accepts this user")
    case .denied:
      status = .noPermission
      hint = "make the user of the URL the owner of the database: ALTER DATABASE name OWNER TO user"
    case .other: (status, hint) = (.software, nil)
    }
  }
}
