package import Logging
package import ZDCServer

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A server's data folder: the database, the blob folder, and a lock that keeps a second server out.
package final class DataFolder: Sendable {
  package let metadata: SQLiteStore
  package let blobs: FolderBlobStore
  let path: String
  private let lock: OpenFile

  /// Opens a folder, or creates it.
  ///
  /// - Throws: ``StoreOpenError``.
  package init(path: String) throws {
    self.path = path
    try Self.create(path)
    lock = try Self.lock(path)
    metadata = try SQLiteStore(path: path + "/zdc.sqlite")
    blobs = try FolderBlobStore(folder: path + "/blobs")
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

  /// Starts a server on this folder; see `RunningServer.start`. Stopping it closes the database.
  package func start(
    configuration: Configuration = Configuration(), clock: ServerClock = .system, logger: Logger
  ) async throws -> RunningServer {
    try await RunningServer.start(
      configuration: configuration, metadata: metadata, blobs: blobs, clock: clock, logger: logger)
  }
}
