import Foundation
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A program of another user, which sends messages of any content to users of the app.
final class Stranger: ZeroDarkCloudDelegate {
  /// What is sent with the next message.
  private let content: Data

  private init(_ content: Data) { self.content = content }

  /// Sends messages from a new account.
  ///
  /// - Returns: The ID of the account.
  @discardableResult
  static func send(_ contents: [Data], to user: String, on server: TestServer) async throws -> String {
    let folder = try TemporaryFolder()
    var config = try ZDCConfig(
      primaryTreeID: "com.example.ZeroDarkTodo", server: server.url.absoluteString, databaseDirectory: folder.url)
    config.syncAutomatically = false
    let zdc = try ZeroDarkCloud(delegate: Stranger(Data()), config: config)
    let key = try zdc.databaseKeyManager.createKey()
    let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
    let own = try await session.localUserManager.createAccount().localUser.uuid
    try await session.syncManager.syncUntilIdle(localUserID: own)
    let recipient = try await session.userManager.fetchUser(id: user, for: own)
    for content in contents {
      zdc.delegate = Stranger(content)
      try await session.tree(ofLocalUserID: own).write { _, cloud in _ = try cloud.sendSignal(toRecipient: recipient) }
      try await session.syncManager.syncUntilIdle(localUserID: own)
    }
    try await zdc.close()
    return own
  }

  func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? { ZDCData(data: content) }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData {
    ZDCData(data: content)
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
}
