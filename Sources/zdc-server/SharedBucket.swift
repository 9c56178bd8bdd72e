import ZDCServer
import ZDCServerPostgres
import ZDCServerSQLite

/// The place of large content beside a database that several servers may use.
///
/// The database has the ID under which they own a bucket. The data folder of each server repeats it: it says that no
/// content is in the folder.
struct SharedBucket {
  let database: PostgresStore
  let folder: ContentFolder
  let place: BlobPlace

  /// Opens the bucket, or the data folder's own store if no bucket is given.
  ///
  /// - Throws: ``Failure``.
  func open(_ use: StorePlace.Use) async throws -> any BlobStore {
    guard place.address != nil else {
      guard try await database.bucketOwner() == nil else { throw Self.needsBucket }
      return try await openPlace(use)
    }
    let (owner, isNew) = try await owner()
    do {
      try await note(owner)
      return try await openPlace(use)
    } catch {
      // The place is refused, and nothing was stored there.
      if isNew { try await database.removeBucketOwner(owner) }
      throw error
    }
  }

  private func openPlace(_ use: StorePlace.Use) async throws -> any BlobStore {
    use == .existing ? try await place.existingStore(beside: folder) : try await place.store(beside: folder)
  }

  /// Returns the ID in the database, which takes it from the folder of the server that had the bucket alone.
  private func owner() async throws -> (String, isNew: Bool) {
    if let known = try await database.bucketOwner() { return (known, false) }
    let own = try folder.objectStoreOwner()
    if own == nil, try await database.hasLargeContent() { throw Self.hasContentElsewhere }
    return try await database.claimBucket(own ?? ContentFolder.newObjectStoreOwner())
  }

  private func note(_ owner: String) async throws {
    switch try folder.objectStoreOwner() {
    case nil: try await folder.createObjectStoreOwner(owner)
    case owner: break
    default: throw Self.otherFolder
    }
  }

  private static let needsBucket = Failure(
    .usage, "the large content of this database is in an object store", hint: "give its address: --blobs")
  private static let hasContentElsewhere = Failure(
    .usage, "the large content of this database is in the data folder of another server",
    hint: "copy it with zdc-server migrate, or give that folder and no --blobs")
  private static let otherFolder = Failure(
    .unavailable, "the data folder belongs to a server with another database", hint: "give another --data folder")
}
