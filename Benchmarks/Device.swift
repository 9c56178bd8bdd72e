import Foundation
import ZDCTreesystem
import ZeroDarkCloud

/// One device: a database of its own, engines that run by themselves.
struct Device {
  let app: BenchApp
  let zdc: ZeroDarkCloud

  /// The tree of the command line client, so that `zdc ls` can list what is made here.
  static let treeID = "zdc.files"

  init(server: URL, folder: URL, treeID: String = Device.treeID) throws {
    app = BenchApp(content: Data(repeating: 0x61, count: Bench.contentBytes))
    let config = ZDCConfig(primaryTreeID: treeID, serverURL: server, databaseDirectory: folder)
    zdc = try ZeroDarkCloud(delegate: app, config: config)
    try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: Data(repeating: 7, count: 32)))
  }

  func createAccount() async throws -> (user: String, words: [String]) {
    guard let users = zdc.localUserManager, let sync = zdc.syncManager else { throw BenchError("not unlocked") }
    let updates = sync.statusUpdates
    let (user, words) = try await users.createAccount()
    try await online(updates)
    return (user.uuid, words)
  }

  /// Returns when what the server has is pulled and changes arrive by themselves.
  func loginAndPull(_ words: [String]) async throws {
    guard let sync = zdc.syncManager else { throw BenchError("not unlocked") }
    let updates = sync.statusUpdates
    try await login(words)
    try await online(updates)
  }

  func login(_ words: [String]) async throws {
    _ = try await zdc.localUserManager?.login(words: words)
  }

  private func online(_ updates: AsyncStream<ZDCSyncStatus>) async throws {
    for await update in updates {
      switch update {
      case .online: return
      case .error(_, let error): throw error
      case .security(_, let error): throw error
      default: break
      }
    }
  }

  /// Creates nodes below the trunk, all in one transaction.
  func create(_ names: [String], user: String) async throws {
    let zdc = zdc
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else {
        throw BenchError("no such user")
      }
      for name in names { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: [name])) }
    }
  }

  /// The node's content has changed.
  func edit(_ name: String, user: String) async throws {
    let zdc = zdc
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user),
        let node = cloud.node(path: ZDCTreesystemPath(pathComponents: [name]))
      else { throw BenchError("no such node") }
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    }
  }

  /// Callbacks run inside a transaction: when the next one has its turn, the last one is on disk.
  func settle() async throws {
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { _ in }
  }

  func close() async throws {
    try await zdc.close()
  }
}
