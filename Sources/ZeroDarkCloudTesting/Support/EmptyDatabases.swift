internal import Foundation
internal import GRDB
internal import ZDCClientStore
internal import ZDCServerSQLite

/// Database files with all tables of the framework or of the server, and without rows.
///
/// Test devices and servers begin with a copy: opening a file that does not exist yet runs every migration, which takes
/// much of a short test's time.
enum EmptyDatabases {
  /// Creates the file of a new device's database. The migrations of its key and of the app still run.
  static func createDevice(at path: URL) async throws { try await write(device, to: path) }

  /// Creates the file of a new server's database.
  static func createServer(at path: URL) async throws { try await write(server, to: path) }

  private static let device = Task {
    try await bytes { path in
      let queue = try DatabaseQueue(path: path)
      var migrator = DatabaseMigrator()
      FrameworkSchema.register(in: &migrator)
      try migrator.migrate(queue)
      try queue.close()
    }
  }

  private static let server = Task {
    try await bytes { path in try await SQLiteStore(path: path).close() }
  }

  private static func bytes(_ create: (_ path: String) async throws -> Void) async throws -> Data {
    let folder = try TemporaryFolder()
    let path = folder.url.appendingPathComponent("database")
    try await create(path.path)
    return try Data(contentsOf: path)
  }

  private static func write(_ bytes: Task<Data, any Error>, to path: URL) async throws {
    try FileManager.default.createDirectory(
      at: path.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let bytes = try await bytes.value
    guard FileManager.default.createFile(atPath: path.path, contents: bytes, attributes: [.posixPermissions: 0o600])
    else { throw TestFailure("\(path.path) cannot be created") }
  }
}
