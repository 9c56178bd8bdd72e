import Foundation
import Synchronization
import ZeroDarkCloud

/// A note as the app stores it. The cloud receives its JSON.
struct Note: Codable, Sendable, Equatable {
  static let collection = "notes"

  var id = UUID().uuidString
  var title: String
  var lines: [String] = []
}

/// Provides content to the framework and handles changes from other devices.
final class NotesDelegate: ZeroDarkCloudDelegate {
  /// Weak: the framework holds its delegate strongly, so a strong reference would be a retain cycle.
  struct Framework { weak var zdc: ZeroDarkCloud? }

  let framework = Mutex(Framework())

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    let cloud = framework.withLock { $0.zdc }?.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    guard let note = cloud?.linkedObject(forNodeID: node.uuid) as? Note else { throw ZDCError(.noContent) }
    return ZDCData(data: try JSONEncoder().encode(note))
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

  private func cloud(_ node: ZDCNode, _ transaction: ZDCReadWriteTransaction) -> ZDCCloudTransaction? {
    framework.withLock { $0.zdc }?.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    cloud(node, transaction)?.markNodeAsNeedsDownload(node.uuid, components: .data)
  }

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {
    if change == .data { cloud(node, transaction)?.markNodeAsNeedsDownload(node.uuid, components: .data) }
  }

  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {
    guard let link = cloud(node, transaction)?.linkedCollectionAndKey(forNodeID: node.uuid) else { return }
    transaction.removeObject(forKey: link.key, inCollection: link.collection)
  }

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {
    if conflict == .data { cloud(node, transaction)?.markNodeAsNeedsDownload(node.uuid, components: .data) }
  }
}

final class NotesApp: Sendable {
  let zdc: ZeroDarkCloud

  init(serverURL: URL, folder: URL) throws {
    let delegate = NotesDelegate()
    let config = ZDCConfig(primaryTreeID: "com.example.notes", serverURL: serverURL, databaseDirectory: folder)
    let zdc = try ZeroDarkCloud(delegate: delegate, config: config)
    self.zdc = zdc
    delegate.framework.withLock { $0.zdc = zdc }

    let keys = zdc.databaseKeyManager
    var database = ZDCDatabaseConfig(encryptionKey: try keys.isConfigured ? keys.unlock() : keys.createKey())
    database.register(Note.self, inCollection: Note.collection)
    try zdc.unlockOrCreateDatabase(database)
  }

  /// Creates an account, on the first device. Show the words to the user: they are the account.
  func signUp() async throws -> [String] {
    try await zdc.localUserManager!.createAccount().words
  }

  /// Logs in, on every other device.
  func logIn(_ words: [String]) async throws {
    _ = try await zdc.localUserManager!.login(words: words)
  }
}
