import Foundation
import Synchronization
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A device on which the app of the document "Collaboration" runs.
final class Seed004Person: Sendable {
  let device: TestDevice
  let app: Seed004App
  let user: String
  let clock: ManualClock

  private init(_ device: TestDevice, _ app: Seed004App, clock: ManualClock) throws {
    (self.device, self.app, self.clock) = (device, app, clock)
    user = try device.localUserID
  }

  /// - Parameter words: Those of the account; nil to create one.
  static func create(_ name: String, _ world: TestWorld, words: [String]? = nil) async throws -> Seed004Person {
    let app = Seed004App()
    let device = try await TestDevice(name, server: world.server, clock: world.clock, delegate: app) { config in
      config.register(Task.self, inCollection: kCollection_Tasks)
      config.register(List.self, inCollection: kCollection_Lists)
    }
    if let words { try await device.login(words: words) } else { app.words = try await device.createAccount() }
    app.seed.zdc = try device.zdc
    try await device.sync()
    return try Seed004Person(device, app, clock: world.clock)
  }

  /// Starts the app again. The seed has one object for the life of the process.
  func relaunch() async throws {
    try await device.relaunch()
    app.seed.zdc = try device.zdc
  }

  /// Makes the user known to this device, and lets messages of theirs in.
  func meet(_ other: Seed004Person) async throws {
    guard let users = try device.zdc.userManager else { throw TestFailure("\(device.name) is locked") }
    _ = try await users.fetchUser(id: other.user, for: user)
    try await device.syncManager.acceptMessages(fromUserID: other.user, forLocalUserID: user)
  }

  func node(_ path: ZDCTreesystemPath) async throws -> ZDCNode? {
    try await device.write { _, cloud in cloud.node(path: path) }
  }

  // MARK: The seed's calls

  /// Creates a list with four items, and returns its node.
  func createList(_ list: List = List(uuid: "list", title: "Groceries")) async throws -> ZDCNode {
    let path = ZDCTreesystemPath(pathComponents: [list.title])
    return try await device.write { transaction, cloud in
      let node = try cloud.createNode(withPath: path)
      for name in ["D", "E", "F", "G"] { try cloud.createNode(withPath: path.appendingComponent(name)) }
      transaction.setObject(list, forKey: list.uuid, inCollection: kCollection_Lists)
      try cloud.linkNodeID(node.uuid, toKey: list.uuid, inCollection: kCollection_Lists)
      return node
    }
  }

  func invite(_ other: Seed004Person, to list: ZDCNode) async throws {
    app.seed.inviting(zdc: try device.zdc, localUserID: user, bobsUserID: other.user, listNodeID: list.uuid)
    try await waitForWrites()
  }

  func accept(_ invitation: Invitation) async throws {
    app.seed.accepting(zdc: try device.zdc, invitation: invitation)
    try await waitForWrites()
  }

  /// The seed does not wait for its transactions. They run in order, so this one is the last.
  private func waitForWrites() async throws { try await device.database.write { _ in } }

  /// The messages in the inbox.
  func messages() async throws -> [ZDCNode] {
    try await device.write { _, cloud in
      try cloud.trunkNode(.inbox).map { try cloud.children(ofNodeID: $0.uuid) } ?? []
    }
  }

  /// The only invitation in the inbox, as the app reads it.
  func invitation() async throws -> Invitation {
    let messages = try await messages()
    guard messages.count == 1 else { throw TestFailure("\(device.name) has \(messages.count) messages") }
    return try await invitation(in: messages[0])
  }

  func invitation(in message: ZDCNode) async throws -> Invitation {
    guard let downloads = try device.zdc.downloadManager, let sender = message.senderID else {
      throw TestFailure("no message of another user")
    }
    let file = try await downloads.downloadNodeData(message).cryptoFile
    defer { try? FileManager.default.removeItem(at: file.fileURL) }
    let json = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
    let content = try JSONDecoder().decode([String: String].self, from: json)
    return Invitation(
      receiverID: user, senderID: sender, title: content["title"] ?? "", cloudID: content["cloudID"] ?? "",
      cloudPath: content["cloudPath"] ?? "")
  }
}

/// The app's delegate. What the document shows of it is in ``Seed004``.
final class Seed004App: ZeroDarkCloudDelegate {
  /// A call of `didSendMessage`.
  struct Sent: Equatable {
    var message: String
    var recipient: String
    /// The seed's tag on the message, as the call sees it.
    var tag: String?
  }

  let seed = Seed004()
  nonisolated(unsafe) var words: [String]?
  private let calls = Mutex<[Sent]>([])

  var sent: [Sent] { calls.withLock { $0 } }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    let content = try transaction.object(
      TestContent.self, forKey: node.uuid, inCollection: TestContent.collection)
    return ZDCData(data: content?.data ?? Data(path.nodeName.utf8))
  }
  func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    seed.data(forMessage: message, transaction: transaction)
  }
  func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = seed.zdc.cloudTransaction(transaction, forLocalUserID: message.localUserID)
    let tag = cloud?.tag(forNodeID: message.uuid, withIdentifier: "listNodeID") as? String
    calls.withLock { $0.append(Sent(message: message.uuid, recipient: recipient.uuid, tag: tag)) }
    seed.didSendMessage(message, toRecipient: recipient, transaction: transaction)
  }
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws {}
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws {
    seed.didDiscoverNewNode(node, at: path, transaction: transaction)
  }
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {}
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {}
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {}
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {}
}
