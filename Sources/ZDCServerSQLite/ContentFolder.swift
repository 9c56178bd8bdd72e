#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The part of a data folder that a server with a database elsewhere uses too: the blob folder, and the lock.
package final class ContentFolder: Sendable {
  /// Where the database is that knows the content.
  package enum Database: Sendable { case here, elsewhere }

  /// A file that says that the database is elsewhere.
  private static let mark = "/database.elsewhere"

  package let blobs: FolderBlobStore
  let path: String
  private let lock: OpenFile

  /// Opens a folder, or creates it.
  ///
  /// - Throws: ``StoreOpenError``; also for a folder whose content another database knows: this one would have it
  ///   collected.
  package init(path: String, database: Database) throws {
    self.path = path
    try Self.create(path)
    lock = try Self.lock(path)
    switch database {
    case .here:
      guard !FileManager.default.fileExists(atPath: path + Self.mark) else {
        throw StoreOpenError(.other("its content belongs to another database; give --database"), path: path)
      }
    case .elsewhere: try Self.markElsewhere(path)
    }
    blobs = try FolderBlobStore(folder: path + "/blobs")
  }

  /// Returns whether the folder belongs to a server whose database is elsewhere.
  package static func isBesideDatabase(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: path + mark)
  }

  private static func markElsewhere(_ path: String) throws {
    guard !FileManager.default.fileExists(atPath: path + "/zdc.sqlite") else {
      throw StoreOpenError(.other("it has a SQLite database; --database needs another --data folder"), path: path)
    }
    guard FileManager.default.createFile(atPath: path + mark, contents: nil) else {
      throw StoreOpenError(.noPermission, path: path)
    }
  }

  private static func create(_ path: String) throws {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw StoreOpenError(.cannotCreate, path: path) }
    guard FileManager.default.isWritableFile(atPath: path) else { throw StoreOpenError(.noPermission, path: path) }
  }

  private static func lock(_ path: String) throws -> OpenFile {
    let file: OpenFile
    do { file = try OpenFile(path + "/server.lock", .create) } catch { throw StoreOpenError(.noPermission, path: path) }
    guard file.lock() else { throw StoreOpenError(.inUse, path: path) }
    return file
  }
}
