import Foundation
import Synchronization
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A shopping list that two people change concurrently, as an app's model would define it.
struct Shopping: ZDCRecord, Codable, Equatable {
  @Syncable var title = "list"
  @Syncable var note: String?
  var prices: ZDCDictionary<String, Int> = [:]
  var items: ZDCOrderedDictionary<String, Item> = [:]
  var tags: ZDCSet<Int> = []
  var log: ZDCArray<Int> = []

  struct Item: ZDCRecord, Codable, Equatable {
    @Syncable var count = 1
    @Syncable var isDone = false

    static var syncableFields: [ZDCField<Item>] { [ZDCField("count", \._count), ZDCField("isDone", \._isDone)] }
  }

  static var syncableFields: [ZDCField<Shopping>] {
    [
      ZDCField("title", \._title), ZDCField("note", \._note), ZDCField("prices", \.prices),
      ZDCField("items", \.items), ZDCField("tags", \.tags), ZDCField("log", \.log),
    ]
  }

  static let collection = "shopping"
}

/// The app of reference 7.4: edits carry their changesets, and others' changes are downloaded and merged.
final class MergeApp: ZeroDarkCloudDelegate {
  private let framework = Mutex<ZeroDarkCloud?>(nil)
  /// Whether the app passes its merge reports to `didMergeData`.
  let reports: Bool

  init(reports: Bool) {
    self.reports = reports
  }

  func attach(_ zdc: ZeroDarkCloud?) { framework.withLock { $0 = zdc } }

  private func cloud(_ transaction: ZDCReadWriteTransaction, _ node: ZDCNode) -> ZDCCloudTransaction? {
    framework.withLock { $0 }?.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    let list = try transaction.object(Shopping.self, forKey: node.uuid, inCollection: Shopping.collection)
    return ZDCData(data: try JSONEncoder().encode(try #require(list)))
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    cloud(transaction, node)?.markNodeAsNeedsDownload(node.uuid, components: .data)
  }

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {
    if change == .data { cloud(transaction, node)?.markNodeAsNeedsDownload(node.uuid, components: .data) }
  }

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
  ) {
    cloud(transaction, node)?.markNodeAsNeedsDownload(node.uuid, components: .data)
  }

  /// Steps 3 and 4 of reference 7.4.
  func take(
    _ cloudVersion: Shopping, _ node: ZDCNode, _ transaction: ZDCReadWriteTransaction, _ cloud: ZDCCloudTransaction
  ) throws {
    guard let eTag = node.eTag_data else { return }
    let key = node.uuid
    let pending = cloud.pendingChangesets(forNodeID: key)
    if var local = try transaction.object(Shopping.self, forKey: key, inCollection: Shopping.collection),
      !pending.isEmpty
    {
      let report = try local.mergeReporting(cloudVersion: cloudVersion, pendingChangesets: pending)
      transaction.setObject(local, forKey: key, inCollection: Shopping.collection)
      cloud.didMergeData(withETag: eTag, forNodeID: key, report: reports ? report : nil)
    } else {
      transaction.setObject(cloudVersion, forKey: key, inCollection: Shopping.collection)
    }
    cloud.unmarkNodeAsNeedsDownload(key, components: .data, ifETagMatches: eTag)
  }
}

/// A device with that app, driven by the test.
struct MergeDevice {
  let device: TestDevice
  let app: MergeApp

  init(_ name: String, _ world: TestWorld, reports: Bool = true, words: [String]? = nil) async throws {
    app = MergeApp(reports: reports)
    device = try await TestDevice(name, server: world.server, clock: world.clock, delegate: app) {
      $0.register(Shopping.self, inCollection: Shopping.collection)
    }
    app.attach(try device.zdc)
    if let words { try await device.login(words: words) }
  }

  func create(_ list: Shopping) async throws {
    try await device.write { transaction, cloud in
      let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["list"]))
      transaction.setObject(list, forKey: node.uuid, inCollection: Shopping.collection)
    }
  }

  func list() async throws -> Shopping {
    try await device.write { transaction, cloud in
      let node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["list"])))
      return try #require(transaction.object(forKey: node.uuid, inCollection: Shopping.collection) as? Shopping)
    }
  }

  /// Step 1 of reference 7.4.
  func edit(_ body: @escaping @Sendable (inout Shopping) -> Void) async throws {
    try await device.write { transaction, cloud in
      let node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["list"])))
      var list = try #require(transaction.object(forKey: node.uuid, inCollection: Shopping.collection) as? Shopping)
      body(&list)
      guard let changeset = try list.changeset() else { return }
      transaction.setObject(list, forKey: node.uuid, inCollection: Shopping.collection)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: changeset)
    }
  }

  /// - Returns: Whether anything was pulled, pushed or downloaded.
  func sync() async throws -> Bool {
    var isBusy = false
    for _ in 0..<10 {
      let summary = try await device.sync()
      let downloaded = try await download()
      isBusy = isBusy || summary.pulled.commits > 0 || summary.pushed.commits > 0 || downloaded
      if !downloaded { return isBusy }
    }
    throw TestFailure("\(device.name) does not come to rest")
  }

  /// Downloads and merges without pushing.
  func mergeOnly() async throws { _ = try await download() }

  private func download() async throws -> Bool {
    let wanted = try await device.write { _, cloud in
      cloud.nodeIDsMarkedAsNeedsDownload(components: .data).compactMap(cloud.node(id:))
    }
    guard !wanted.isEmpty else { return false }
    let manager = try #require(try device.zdc.downloadManager)
    for try await download in manager.downloadContents(of: wanted) {
      guard case .memory(let data, _, _) = try download.content.get() else { throw TestFailure("a large list") }
      let version = try JSONDecoder().decode(Shopping.self, from: data)
      let node = download.node
      try await device.write { [app] transaction, cloud in try app.take(version, node, transaction, cloud) }
    }
    return true
  }

  func journal() async throws -> [ZDCMergeJournalEntry] {
    try await device.write { _, cloud in cloud.mergeJournal() }
  }
}
