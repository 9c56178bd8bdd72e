import Foundation
import ZDCTreesystem
import ZeroDarkCloud

/// One device: a dedicated database, with engines that run automatically.
struct Device {
  let app: BenchApp
  let zdc: ZeroDarkCloud

  /// The tree of the command line client, so that `zdc ls` can list the nodes created here.
  static let treeID = "zdc.files"

  /// - Parameters:
  ///   - app: the delegate that provides content; by default one with small content for every node.
  ///   - transport: counts the traffic.
  init(server: URL, folder: URL, app: BenchApp? = nil, transport: CountingTransport? = nil) throws {
    self.app = app ?? BenchApp(content: ZDCData(data: Data(repeating: 0x61, count: Bench.contentBytes)))
    var config = ZDCConfig(primaryTreeID: Device.treeID, serverURL: server, databaseDirectory: folder)
    config.transport = transport
    zdc = try ZeroDarkCloud(delegate: self.app, config: config)
    try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: Data(repeating: 7, count: 32)))
  }

  func createAccount() async throws -> (user: String, words: [String]) {
    guard let users = zdc.localUserManager, let sync = zdc.syncManager else { throw BenchError("not unlocked") }
    let updates = sync.statusUpdates
    let (user, words) = try await users.createAccount()
    try await online(updates)
    return (user.uuid, words)
  }

  /// Logs in, and returns when everything on the server is pulled and changes arrive automatically.
  func loginAndPull(_ words: [String]) async throws {
    guard let sync = zdc.syncManager else { throw BenchError("not unlocked") }
    let updates = sync.statusUpdates
    try await login(words)
    try await online(updates)
  }

  func login(_ words: [String]) async throws {
    _ = try await zdc.localUserManager?.login(words: words)
  }

  /// Returns the engines' status updates from now on.
  func updates() throws -> AsyncStream<ZDCSyncStatus> {
    guard let sync = zdc.syncManager else { throw BenchError("not unlocked") }
    return sync.statusUpdates
  }

  func online(_ updates: AsyncStream<ZDCSyncStatus>) async throws {
    for await update in updates {
      switch update {
      case .online: return
      case .error(_, let error) where !(error is TransportError): throw error
      case .security(_, let error): throw error
      default: break
      }
    }
  }

  /// Creates nodes below the trunk or a folder, all in one transaction.
  func create(_ names: [String], below folder: [String] = [], user: String) async throws {
    let zdc = zdc
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else {
        throw BenchError("no such user")
      }
      for name in names { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: folder + [name])) }
    }
  }

  /// Queues an upload of the node's changed content.
  func edit(_ name: String, below folder: [String] = [], user: String) async throws {
    let zdc = zdc
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user),
        let node = cloud.node(path: ZDCTreesystemPath(pathComponents: folder + [name]))
      else { throw BenchError("no such node") }
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    }
  }

  /// Downloads and opens the content of all discovered nodes.
  func downloadAll(_ nodes: Int) async throws {
    guard let downloads = zdc.downloadManager else { throw BenchError("not unlocked") }
    var bytes = 0
    for try await download in downloads.downloadContents(of: app.discoveredNodes) {
      guard case .memory(let data, _, _) = try download.content.get() else {
        throw BenchError("a small node in a file")
      }
      bytes += data.count
    }
    guard bytes == nodes * Bench.contentBytes else { throw BenchError("contents are missing") }
  }

  /// Waits for all earlier transactions: callbacks run inside one, so when the next has its turn, the last is on disk.
  func settle() async throws {
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { _ in }
  }

  func close() async throws {
    try await zdc.close()
  }
}
