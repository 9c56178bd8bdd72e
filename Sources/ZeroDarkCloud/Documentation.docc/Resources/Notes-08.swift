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

  private func write(
    _ body: @escaping @Sendable (ZDCReadWriteTransaction, ZDCCloudTransaction) throws -> Void
  ) async throws {
    let zdc = zdc
    try await zdc.databaseManager!.rwDatabaseConnection.write { transaction in
      guard
        let user = zdc.localUserManager?.anyLocalUser(transaction),
        let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user.uuid)
      else { throw ZDCError(.localUserNotFound) }
      try body(transaction, cloud)
    }
  }

  func add(_ note: Note) async throws {
    try await write { transaction, cloud in
      let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: [note.id]))
      transaction.setObject(note, forKey: note.id, inCollection: Note.collection)
      try cloud.linkNodeID(node.uuid, toKey: note.id, inCollection: Note.collection)
    }
  }

  /// Returns the notes to show in a list: now, and after each change on any device.
  func notes() -> ZDCDatabaseValues<[Note]> {
    zdc.databaseManager!.uiDatabaseConnection.values(of: { transaction in
      try transaction.keys(inCollection: Note.collection).compactMap { key in
        transaction.object(forKey: key, inCollection: Note.collection) as? Note
      }
    })
  }

  /// Receives notes from other devices. Runs for the lifetime of the app.
  func receive() async throws {
    let users = try await zdc.localUserManager!.allLocalUserIDs()
    guard let user = users.first else { throw ZDCError(.localUserNotFound) }
    for try await download in zdc.downloadManager!.downloadMarkedContents(forLocalUserID: user) {
      // One unreadable note does not block the others.
      do {
        let bytes = try cleartext(download.content.get())
        try await take(try JSONDecoder().decode(Note.self, from: bytes), of: download.node)
      } catch {
        print("a note did not arrive: \(error)")
      }
    }
  }

  private func cleartext(_ content: ZDCNodeContent) throws -> Data {
    switch content {
    case .memory(let data, _, _): return data
    case .file(let file):
      defer { zdc.diskManager?.deleteFileIfUnmanaged(file.fileURL) }
      return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
    }
  }

  private func take(_ note: Note, of node: ZDCNode) async throws {
    try await write { transaction, cloud in
      // Deleted in the meantime.
      if cloud.node(id: node.uuid) == nil { return }
      transaction.setObject(note, forKey: note.id, inCollection: Note.collection)
      try cloud.linkNodeID(node.uuid, toKey: note.id, inCollection: Note.collection)
      cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .data, ifETagMatches: node.eTag_data)
    }
  }
}
