import Foundation
import Synchronization
import Testing
import ZDCServer
import ZDCServerMemory
import ZDCServerPostgres
import ZDCServerS3
import ZDCServerSQLite

/// The stores of a test's server: a folder, memory with `ZDC_TEST_STORE=memory`, or a database of PostgreSQL and content
/// in memory with `ZDC_TEST_STORE=postgres`; a folder and an object store with `ZDC_TEST_BLOBS=s3`. Every test of the
/// server's answers runs over all.
struct TestStores {
  let metadata: any MetadataStore
  var blobs: any BlobStore
  /// Holds the folder's lock.
  private var folder: DataFolder?
  private var shared: PostgresStore?

  private enum Kind: String { case folder, memory, postgres }

  private static let kind: Kind = {
    guard let name = ProcessInfo.processInfo.environment["ZDC_TEST_STORE"] else { return .folder }
    guard let kind = Kind(rawValue: name) else { preconditionFailure("ZDC_TEST_STORE is memory or postgres") }
    return kind
  }()

  static var haveNoFolder: Bool { kind != .folder || areInObjectStore }

  static let areInObjectStore = ProcessInfo.processInfo.environment["ZDC_TEST_BLOBS"] == "s3"

  /// Memory that a server left, by the name of its folder.
  private static let memories = Mutex<[String: (MemoryStore, MemoryBlobStore)]>([:])
  /// Databases that a server left, by the name of its folder.
  private static let databases = Mutex<[String: (url: String, blobs: MemoryBlobStore)]>([:])

  static func open(_ path: String) throws -> TestStores {
    switch kind {
    case .memory: return openMemory(path)
    case .postgres: return try openDatabase(path)
    case .folder:
      let folder = try DataFolder(path: path)
      if areInObjectStore {
        let blobs = try TestObjectStore.store(prefix: URL(fileURLWithPath: path).lastPathComponent)
        return TestStores(metadata: folder.metadata, blobs: blobs, folder: folder)
      }
      return TestStores(metadata: folder.metadata, blobs: folder.blobs, folder: folder)
    }
  }

  private static func openDatabase(_ path: String) throws -> TestStores {
    let (url, blobs) = try databases.withLock { databases in
      let known = try databases[path] ?? (try TestPostgres.shared().newDatabase(), MemoryBlobStore())
      databases[path] = known
      return known
    }
    let store = try PostgresStore(url: url, connections: 3, isShared: true)
    return TestStores(metadata: store, blobs: blobs, shared: store)
  }

  /// Over PostgreSQL, as of a server that shares its database with others.
  func coordination(_ configuration: Configuration) throws -> (any ServerCoordination)? {
    // Tests move the clock of their server.
    try shared.map {
      try PostgresCoordination($0, holdMs: configuration.bounds.commitHoldMs, followsDatabaseTime: false)
    }
  }

  private static func openMemory(_ path: String) -> TestStores {
    let (metadata, blobs) = memories.withLock { memories in
      let known = memories[path] ?? (MemoryStore(), MemoryBlobStore())
      memories[path] = known
      return known
    }
    return TestStores(metadata: metadata, blobs: blobs)
  }

  /// The findings of `zdc-server check` in a folder that no server uses.
  static func findings(in path: String) throws -> [CheckFinding] {
    haveNoFolder ? [] : try DataFolder.check(path: path).findings
  }

  static func forget(_ path: String) {
    memories.withLock { $0[path] = nil }
    guard let database = databases.withLock({ $0.removeValue(forKey: path) }) else { return }
    // One that stays is removed with the server.
    try? TestPostgres.shared().remove(database.url)
  }
}

extension Trait where Self == ConditionTrait {
  /// For tests that look into the data folder, damage it, or run the server's program.
  static var needsFolder: Self { .disabled(if: TestStores.haveNoFolder, "these stores have no folder") }
}
