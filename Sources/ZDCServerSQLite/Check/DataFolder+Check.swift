internal import GRDB

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension DataFolder {
  /// Verifies everything in a folder, and changes nothing.
  ///
  /// The folder must be at rest: the check refuses to run while a server uses it. If a server was killed, the check
  /// reads the write-ahead log as the next start would. Memory use is bounded for any folder: the live nodes of the
  /// current zone are in a temporary file.
  ///
  /// - Parameters:
  ///   - files: whether to read large content that is in the folder.
  ///   - found: called with each finding as it is made.
  ///   - progress: called periodically.
  /// - Throws: ``StoreOpenError`` if there is nothing to check or it cannot be opened.
  package static func check(
    path: String, files: Bool = true, found: @escaping (CheckFinding) -> Void = { _ in },
    progress: @escaping (CheckProgress) -> Void = { _ in }
  ) throws -> CheckReport {
    let database = path + "/zdc.sqlite"
    guard FileManager.default.fileExists(atPath: database) else { throw StoreOpenError(.missing, path: path) }
    let lock = try lockForReading(path)
    defer { withExtendedLifetime(lock) {} }
    let hadLog = FileManager.default.fileExists(atPath: database + "-wal")
    defer { if !hadLog { removeTraces(of: database) } }
    let version = try SQLiteStore.existingVersion(database)
    guard version > 0 else { throw StoreOpenError(.missing, path: path) }
    let isHere = try files && ContentFolder.objectStoreOwner(of: path) == nil
    let blobFolder = isHere ? path + "/blobs" : nil
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    configuration.label = "zdc.server.check"
    do {
      var queue = try DatabaseQueue(path: database, configuration: configuration)
      guard try !queue.read(SQLiteRows.isBeingFilled) else { throw StoreOpenError.incomplete(database) }
      if version < Schema.version { queue = try migratedCopy(of: queue) }
      // Without a transaction: a damaged page would end it, and with it the rest of the check. There is no writer.
      let report = try ReplayScratch.with { scratch in
        queue.unsafeRead { db in
          IntegrityCheck(
            db, scratch: scratch, blobFolder: blobFolder, found: found, progress: progress
          ).run()
        }
      }
      try queue.close()
      return report
    } catch let error as StoreOpenError {
      throw error
    } catch StoreError.damaged {
      throw StoreOpenError(.damaged, path: database)
    } catch { throw StoreOpenError(error, path: database) }
  }

  /// Returns a copy of an older folder's database, as this server would migrate it. The folder stays as it is; the copy
  /// is in a hidden file that is deleted when it is closed.
  private static func migratedCopy(of old: DatabaseQueue) throws -> DatabaseQueue {
    let copy = try DatabaseQueue(path: "")
    try old.backup(to: copy)
    try old.close()
    try copy.writeWithoutTransaction { db in
      try Schema.migrate(db, from: try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0)
    }
    return copy
  }

  /// Removes the two empty files that a reader of a database with a write-ahead log creates and leaves behind.
  private static func removeTraces(of database: String) {
    for suffix in ["-wal", "-shm"] { try? OpenFile.remove(database + suffix) }
  }

  /// Takes the lock that a running server holds. A folder on a read-only medium cannot have a server.
  private static func lockForReading(_ path: String) throws -> OpenFile? {
    let name = path + "/server.lock"
    guard let file = (try? OpenFile(name, .create)) ?? (try? OpenFile(name, .read)) else { return nil }
    guard file.lock() else { throw StoreOpenError(.inUse, path: path) }
    return file
  }
}
