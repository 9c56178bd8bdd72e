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
  package let content: ContentFolder
  package var blobs: FolderBlobStore { content.blobs }
  private var deletions: DeletionFile { DeletionFile(path: content.path + "/" + DeletionFile.defaultName) }

  /// Opens a folder, or creates it.
  ///
  /// - Parameter filling: whether to open a folder that is not complete yet, in order to fill it.
  /// - Throws: ``StoreOpenError``.
  package init(path: String, filling: Bool = false) throws {
    content = try ContentFolder(path: path, database: .here)
    metadata = try SQLiteStore(path: path + "/zdc.sqlite", filling: filling)
  }

  /// Returns whether a folder has a database.
  package static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: path + "/zdc.sqlite")
  }

  /// Starts a server on this folder; see `RunningServer.start`. Stopping it closes the database.
  package func start(
    configuration: Configuration = Configuration(), clock: ServerClock = .system, logger: Logger
  ) async throws -> RunningServer {
    try await RunningServer.start(
      configuration: configuration, metadata: metadata, blobs: blobs, deletions: deletions, clock: clock,
      logger: logger)
  }
}
