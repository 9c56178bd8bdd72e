import Foundation
import Synchronization
import ZDCMerge
import ZeroDarkCloud

/// An app on one device that uses only the public API.
final class SheetsApp: Sendable {
  let delegate = SheetsDelegate()
  private let folder: URL
  private let serverURL: URL
  private let databaseKey = Data((0..<32).map { _ in UInt8.random(in: 0...255) })
  private let running = Mutex<ZeroDarkCloud?>(nil)
  private let user = Mutex("")

  init(serverURL: URL) throws {
    self.serverURL = serverURL
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("sheets-\(UUID().uuidString)")
    try launch()
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  // MARK: Launching

  func launch() throws {
    var config = ZDCConfig(primaryTreeID: "com.example.sheets", serverURL: serverURL, databaseDirectory: folder)
    config.syncAutomatically = false
    let zdc = try ZeroDarkCloud(delegate: delegate, config: config)
    var database = ZDCDatabaseConfig(encryptionKey: databaseKey)
    database.register(Sheet.self, inCollection: Sheet.collection)
    try zdc.unlockOrCreateDatabase(database)
    delegate.attach(zdc)
    running.withLock { $0 = zdc }
  }

  func quit() async throws {
    delegate.attach(nil)
    let zdc = running.withLock { running in
      defer { running = nil }
      return running
    }
    try await zdc?.close()
  }

  var zdc: ZeroDarkCloud {
    get throws {
      guard let zdc = running.withLock({ $0 }) else { throw NotRunning() }
      return zdc
    }
  }

  var localUserID: String { user.withLock { $0 } }

  /// - Returns: The words with which another device logs in.
  func createAccount() async throws -> [String] {
    guard let (localUser, words) = try await zdc.localUserManager?.createAccount() else { throw NotRunning() }
    user.withLock { $0 = localUser.uuid }
    return words
  }

  func login(_ words: [String]) async throws {
    guard let localUser = try await zdc.localUserManager?.login(words: words) else { throw NotRunning() }
    user.withLock { $0 = localUser.uuid }
  }

  // MARK: Transactions

  private func write<T: Sendable>(
    _ body: @escaping @Sendable (ZDCReadWriteTransaction, ZDCCloudTransaction) throws -> T
  ) async throws -> T {
    let (zdc, user) = (try zdc, localUserID)
    guard let connection = zdc.databaseManager?.rwDatabaseConnection else { throw NotRunning() }
    return try await connection.write { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else { throw NotRunning() }
      return try body(transaction, cloud)
    }
  }

  static func path(_ name: String) -> ZDCTreesystemPath { ZDCTreesystemPath(pathComponents: [name]) }

  func create(_ name: String, _ sheet: Sheet) async throws {
    try await write { transaction, cloud in
      let node = try cloud.createNode(withPath: Self.path(name))
      transaction.setObject(sheet, forKey: node.uuid, inCollection: Sheet.collection)
      try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: Sheet.collection)
    }
  }

  /// - Returns: The changeset that undoes the edit.
  @discardableResult
  func edit(_ name: String, _ change: @escaping @Sendable (inout Sheet) throws -> Void) async throws -> ZDCChangeset {
    try await write { transaction, cloud in
      let (node, found) = try Self.find(name, cloud)
      var sheet = found
      try change(&sheet)
      guard let changeset = try sheet.changeset() else { return .empty }
      transaction.setObject(sheet, forKey: node.uuid, inCollection: Sheet.collection)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: changeset)
      return changeset
    }
  }

  /// - Returns: The changeset that redoes the change.
  @discardableResult
  func undo(_ changeset: ZDCChangeset, in name: String) async throws -> ZDCChangeset {
    try await edit(name) { sheet in try sheet.performUndo(changeset) }
  }

  func rename(_ name: String, to newName: String) async throws {
    try await write { _, cloud in
      var node = try Self.find(name, cloud).node
      node.name = newName
      try cloud.modifyNode(node)
    }
  }

  func delete(_ name: String) async throws {
    try await write { transaction, cloud in
      let node = try Self.find(name, cloud).node
      transaction.removeObject(forKey: node.uuid, inCollection: Sheet.collection)
      if cloud.node(id: node.uuid) != nil { _ = try cloud.delete(node) }
    }
  }

  private static func find(_ name: String, _ cloud: ZDCCloudReadTransaction) throws -> (node: ZDCNode, sheet: Sheet) {
    guard let node = cloud.node(path: path(name)), let sheet = cloud.linkedObject(forNodeID: node.uuid) as? Sheet
    else { throw SheetMissing() }
    return (node, sheet)
  }

  // MARK: Syncing

  /// Pulls and pushes, downloads the nodes marked as needed, and pushes the merged versions.
  func sync() async throws {
    guard let manager = try zdc.syncManager else { throw NotRunning() }
    repeat { try await manager.syncUntilIdle(localUserID: localUserID) } while try await downloadAll() > 0
  }

  private func downloadAll() async throws -> Int {
    let wanted = try await write { _, cloud in
      cloud.nodeIDsMarkedAsNeedsDownload(components: .data).compactMap { cloud.node(id: $0) }
    }
    for node in wanted {
      guard let downloads = try zdc.downloadManager else { throw NotRunning() }
      let (info, file) = try await downloads.downloadNodeData(node)
      let theirs = try JSONDecoder().decode(Sheet.self, from: ZDCFileConversion.decryptCryptoFile(intoMemory: file))
      try FileManager.default.removeItem(at: file.fileURL)
      try await take(theirs, eTag: info.eTag, node)
    }
    return wanted.count
  }

  private func take(_ theirs: Sheet, eTag: String, _ node: ZDCNode) async throws {
    try await write { transaction, cloud in
      if var mine = cloud.linkedObject(forNodeID: node.uuid) as? Sheet {
        try mine.merge(cloudVersion: theirs, pendingChangesets: cloud.pendingChangesets(forNodeID: node.uuid))
        transaction.setObject(mine, forKey: node.uuid, inCollection: Sheet.collection)
        cloud.didMergeData(withETag: eTag, forNodeID: node.uuid)
      } else {
        transaction.setObject(theirs, forKey: node.uuid, inCollection: Sheet.collection)
        try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: Sheet.collection)
      }
      cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .data)
    }
  }

  // MARK: Reading

  /// Returns the app's state: one line per sheet, sorted by name.
  func sheets() async throws -> [String] {
    try await write { transaction, cloud in try Self.sheets(transaction, cloud) }
  }

  /// Returns the same lines as a stream that follows the database.
  func followedSheets() throws -> ZDCDatabaseValues<[String]> {
    let (zdc, user) = (try zdc, localUserID)
    guard let connection = zdc.databaseManager?.uiDatabaseConnection else { throw NotRunning() }
    return connection.values(of: { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else { return [] }
      return try Self.sheets(transaction, cloud)
    })
  }

  private static func sheets(_ transaction: ZDCReadTransaction, _ cloud: ZDCCloudReadTransaction) throws -> [String] {
    guard let home = cloud.trunkNode(.home) else { return [] }
    var lines: [String] = []
    ZDCNodeManager.sharedInstance.enumerateNodes(withParentID: home.uuid, transaction: transaction) { node, _ in
      let sheet = cloud.linkedObject(forNodeID: node.uuid) as? Sheet
      lines.append("\(node.name ?? "?"): \(sheet?.text ?? "?")")
    }
    return lines.sorted()
  }

  /// Returns why a sheet is not in the cloud yet: the kind and reason of each operation.
  func waits(_ name: String) async throws -> [String] {
    try await write { _, cloud in
      let node = try Self.find(name, cloud).node
      return cloud.explain(nodeID: node.uuid)?.operations.map { "\($0.kind) \($0.reason)" } ?? []
    }
  }
}

struct NotRunning: Error {}
