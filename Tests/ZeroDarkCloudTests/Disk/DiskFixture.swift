import Foundation
import GRDB
import Synchronization
import Testing
import ZDCTreesystem
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// A database with a user and some nodes, and a disk manager whose steps a test can observe.
final class DiskFixture: Sendable {
  let folder: TemporaryFolder
  let clock: ManualClock
  let database: ZDCDatabaseManager
  let disk: ZDCDiskManager
  let nodes: [ZDCNode]
  let userID: String

  private init(
    _ folder: TemporaryFolder, _ clock: ManualClock, nodes: [ZDCNode], userID: String,
    onStep: @escaping @Sendable (DiskStep) throws -> Void = { _ in }
  ) throws {
    self.folder = folder
    self.clock = clock
    self.nodes = nodes
    self.userID = userID
    let config = Self.config(folder, clock)
    database = try ZDCDatabaseManager(
      config: config, databaseConfig: ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key))
    disk = ZDCDiskManager(
      database: database.rwDatabaseConnection, folder: folder.url.appendingPathComponent("files"), onStep: onStep)
    disk.start()
  }

  private static func config(_ folder: TemporaryFolder, _ clock: ManualClock) -> ZDCConfig {
    var config = ZDCConfig(
      primaryTreeID: CloudFixture.treeID, serverURL: URL(string: "http://127.0.0.1:8080")!,
      databaseDirectory: folder.url)
    config.syncAutomatically = false
    config.clock = { clock.nowMs }
    return config
  }

  /// Runs `body` with `count` nodes, `/0`, `/1` …, and then checks that rows and files agree.
  static func run(
    nodes count: Int = 1, onStep: @escaping @Sendable (DiskStep) throws -> Void = { _ in },
    _ body: (DiskFixture) async throws -> Void
  ) async throws {
    let (folder, clock) = (try TemporaryFolder(), ManualClock())
    let zdc = try ZeroDarkCloud(delegate: NoOpDelegate(), config: config(folder, clock))
    try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key))
    let user = try await CloudFixture.addUser(zdc)
    let nodes = try await zdc.rw.write { transaction in
      let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
      return try (0..<count).map { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\($0)"])) }
    }
    try await zdc.close()
    let fixture = try DiskFixture(folder, clock, nodes: nodes, userID: user, onStep: onStep)
    do {
      try await body(fixture)
      try fixture.checkFiles()
    } catch {
      try fixture.close()
      throw error
    }
    try fixture.close()
  }

  /// Returns a copy of all files, as the next process would find them if this one were killed now.
  func asIfKilledNow() throws -> DiskFixture {
    let copy = try TemporaryFolder()
    let files = FileManager.default
    for name in try files.contentsOfDirectory(atPath: folder.url.path) where !name.hasSuffix("-shm") {
      try files.copyItem(at: folder.url.appendingPathComponent(name), to: copy.url.appendingPathComponent(name))
    }
    return try DiskFixture(copy, clock, nodes: nodes, userID: userID)
  }

  /// Returns a fixture that acts as another process on the same database.
  func otherProcess() throws -> DiskFixture { try DiskFixture(folder, clock, nodes: nodes, userID: userID) }

  func close() throws {
    disk.stop()
    try database.close()
  }

  var connection: ZDCDatabaseConnection { database.rwDatabaseConnection }
  var node: ZDCNode { nodes[0] }

  // MARK: Files

  /// Returns the names of the existing files.
  func fileNames() throws -> Set<String> {
    let path = disk.folder.url.path
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    return Set(try FileManager.default.contentsOfDirectory(atPath: path).filter(DiskFolder.isName))
  }

  func rowNames() throws -> Set<String> {
    try connection.read { Set(try String.fetchAll($0.database, sql: "SELECT file FROM zdc_disk_file WHERE file > ''")) }
  }

  /// Finishes pending deletions, and checks that every row has its file and every file its row.
  func checkFiles() throws {
    disk.finishPending()
    #expect(try fileNames() == rowNames())
    #expect(try connection.read { try $0.diskFiles.garbage(after: "", limit: 10) } == [])
  }

  // MARK: Content

  func put(_ text: String, _ node: ZDCNode? = nil, _ configure: (ZDCDiskImport) -> Void = { _ in }) throws {
    let diskImport = ZDCDiskImport(cleartextData: Data(text.utf8))
    configure(diskImport)
    try disk.importNodeData(diskImport, for: node ?? self.node)
  }

  /// Returns the stored content; nil if there is none.
  func text(_ node: ZDCNode? = nil) throws -> String? {
    try disk.nodeData(node ?? self.node)?.text()
  }

  func write<T>(_ body: (ZDCReadWriteTransaction, ZDCCloudTransaction) throws -> T) throws -> T {
    try connection.write { transaction in
      let cloud = transaction.writableCloud(forLocalUserID: userID, treeID: CloudFixture.treeID)
      return try body(transaction, try #require(cloud))
    }
  }

  func insert(_ node: ZDCNode) throws -> ZDCNode { try write { try $1.insertNode(node) } }

  func delete(_ node: ZDCNode) throws { try write { _, cloud in _ = try cloud.delete(node) } }

  /// Returns the numbers of the nodes that have data.
  func present() -> [Int] { nodes.indices.filter { disk.hasNodeData(nodes[$0].uuid) } }
}

extension ZDCDiskExport {
  func text() throws -> String? {
    try cryptoFile.map { String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: $0), as: UTF8.self) }
  }
}

/// Returns the code of the ``ZDCError`` that `body` throws.
func errorCode(_ body: () throws -> Void) -> ZDCError.Code? {
  do { try body() } catch { return (error as? ZDCError)?.code }
  return nil
}
