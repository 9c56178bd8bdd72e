import Foundation
import Logging
import Synchronization

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// A temporary folder with databases.
final class DatabaseFixture: Sendable {
  let folder: URL
  let log = RecordedLog()

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  static let key = Data((0..<32).map { UInt8($0) })
  static let otherKey = Data(repeating: 7, count: 32)

  var config: ZDCConfig {
    var config = ZDCConfig(
      primaryTreeID: "com.example.test", serverURL: URL(string: "http://127.0.0.1:8080")!, databaseDirectory: folder)
    config.logger = Logger(label: "test") { _ in RecordingLogHandler(log: self.log) }
    config.syncAutomatically = false
    return config
  }

  var path: URL { config.databasePath }

  func open(
    key: Data = key, migrations: @escaping @Sendable (inout ZDCDatabaseMigrator) -> Void = { _ in }
  ) throws -> ZDCDatabaseManager {
    var database = ZDCDatabaseConfig(encryptionKey: key, migrations: migrations)
    database.register(Note.self, inCollection: "notes")
    return try ZDCDatabaseManager(config: config, databaseConfig: database)
  }

  /// Returns the bytes of every file in the folder.
  func allBytes() throws -> [String: Data] {
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    return try Dictionary(uniqueKeysWithValues: files.map { ($0.lastPathComponent, try Data(contentsOf: $0)) })
  }
}

extension ZDCDatabaseManager {
  /// Returns a note from the collection that tests use.
  func note(_ key: String) async throws -> Note? {
    try await roDatabaseConnection.read { try $0.object(Note.self, forKey: key, inCollection: "notes") }
  }

  func put(_ note: Note, _ key: String) async throws {
    try await rwDatabaseConnection.write { $0.setObject(note, forKey: key, inCollection: "notes") }
  }
}

struct Note: Codable, Sendable, Equatable {
  var title: String
  var stars = 0
}

struct Unrelated: Codable, Sendable, Equatable {
  var number: Int
}

final class RecordedLog: Sendable {
  private let lines = Mutex<[String]>([])

  var text: String { lines.withLock { $0.joined(separator: "\n") } }

  func append(_ line: String) { lines.withLock { $0.append(line) } }
}

struct RecordingLogHandler: LogHandler {
  let log: RecordedLog
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.trace

  init(log: RecordedLog) { self.log = log }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    log.append("\(event.level) \(event.message) \(event.metadata ?? [:])")
  }
}

/// Returns the code of the ``ZDCError`` that `body` throws; nil if it throws something else or nothing.
func zdcCode(_ body: () throws -> Void) -> ZDCError.Code? {
  do { try body() } catch { return (error as? ZDCError)?.code }
  return nil
}

func zdcCodeOf(_ body: () async throws -> Void) async -> ZDCError.Code? {
  do { try await body() } catch { return (error as? ZDCError)?.code }
  return nil
}
