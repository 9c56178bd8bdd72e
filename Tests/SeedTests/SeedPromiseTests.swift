import Dispatch
import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// An app's own class, without a superclass.
final class Recipe: Codable, Sendable, Equatable {
  static let collection = "recipes"

  let title: String

  init(title: String) { self.title = title }

  static func == (a: Recipe, b: Recipe) -> Bool { a.title == b.title }
}

/// A delegate that returns the same content for every node.
private final class ContentGiver: ZeroDarkCloudDelegate {
  private let given: ZDCData

  init(_ given: ZDCData) { self.given = given }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData { given }
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

/// Small things that the original documentation takes for granted.
@Suite struct SeedPromiseTests {
  private func run(_ body: @Sendable @escaping (TestDevice, ZeroDarkCloud, String) async throws -> Void) async throws {
    try await TestWorld.run { world in
      try await world.device(delegate: Seed000Delegate()) { a in try await body(a, try a.zdc, try a.localUserID) }
    }
  }

  /// => every lookup of a write transaction exists in a read transaction, with the same results
  @Test func lookUps_workInATransactionThatOnlyReads() async throws {
    try await run { a, zdc, user in
      let path = ZDCTreesystemPath(pathComponents: ["a", "b"])
      let node = try await a.write { transaction, cloud -> ZDCNode in
        try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a"]))
        let node = try cloud.createNode(withPath: path)
        try cloud.linkNodeID(node.uuid, toKey: "t", inCollection: kCollection_Tasks)
        transaction.setObject(Task(uuid: "t", title: "milk"), forKey: "t", inCollection: kCollection_Tasks)
        cloud.setTag("x", forNodeID: node.uuid, withIdentifier: "tag")
        cloud.markNodeAsNeedsDownload(node.uuid, components: .data)
        return node
      }
      try await a.database.read { transaction in
        #expect(zdc.cloudTransaction(transaction, forLocalUserID: "nobody") == nil)
        let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
        #expect(cloud.node(id: node.uuid) == node && cloud.node(path: path) == node)
        #expect(cloud.node(id: "nothing") == nil && cloud.node(cloudID: node.cloudID) == node)
        #expect(cloud.parentNode(node)?.name == "a" && cloud.targetNode(node) == node)
        #expect(cloud.parentNode(try #require(cloud.parentNode(node)))?.uuid == cloud.trunkNode(.home)?.uuid)
        #expect(cloud.path(for: node) == path)
        #expect(cloud.conflictFreePath(path).nodeName == "b 2")
        #expect((cloud.linkedObject(forNodeID: node.uuid) as? Task)?.title == "milk")
        #expect(cloud.linkedNode(forKey: "t", inCollection: kCollection_Tasks) == node)
        #expect(cloud.tag(forNodeID: node.uuid, withIdentifier: "tag") as? String == "x")
        #expect(cloud.nodeIsMarkedAsNeedsDownload(node.uuid, components: .data))
        #expect(cloud.hasPendingDataUploads(forNodeID: node.uuid))
        #expect(cloud.pendingChangesets(forNodeID: node.uuid).isEmpty)
        #expect(cloud.user(id: user)?.isLocal == true && cloud.user(id: "nobody") == nil)
      }
    }
  }

  /// => neither nodes nor an app's objects inherit from a class of the framework
  @Test func anAppSubclassesNothing() async throws {
    try await run { a, zdc, user in
      try await a.write { transaction, cloud in
        let node = try cloud.createNode(with: ZDCTreesystemPath(pathComponents: ["soup"]))
        #expect(Mirror(reflecting: node).displayStyle == .struct)
        try cloud.linkNodeID(node.uuid, toKey: "soup", inCollection: Recipe.collection)
        transaction.setObject(Recipe(title: "Soup"), forKey: "soup", inCollection: Recipe.collection)
        #expect(cloud.linkedObject(forNodeID: node.uuid) as? Recipe == Recipe(title: "Soup"))
      }
    }
  }

  /// - one app names a list's node by the list's uuid, another by its title, which may change
  @Test func aListsNode_isNamedByUUIDOrTitle() async throws {
    try await run { a, zdc, user in
      let list = List(uuid: UUID().uuidString, title: "Groceries / \u{1F6D2} for Bob")
      try await a.write { _, cloud in
        for name in [list.uuid, list.title] {
          let node = try cloud.createNode(with: ZDCTreesystemPath(pathComponents: [name]))
          #expect(node.name == name)
          #expect(cloud.node(path: ZDCTreesystemPath(pathComponents: [name])) == node)
        }
        var node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: [list.title])))
        node.name = "Party"
        try cloud.modifyNode(node)
        #expect(cloud.node(path: ZDCTreesystemPath(pathComponents: ["Party"]))?.uuid == node.uuid)
      }
      try await a.sync()
      #expect(try await a.queueCount() == 0)
    }
  }

  /// Compiles without a warning: results may be ignored, and what the seeds call without `try` does not throw.
  @Test func resultsMayBeIgnored_andTryIsNotNeeded() async throws {
    try await run { a, zdc, user in
      try await a.write { transaction, cloud in
        let path = ZDCTreesystemPath(pathComponents: ["x"])
        try cloud.createNode(withPath: path)
        let node = try #require(cloud.node(path: path))
        transaction.setObject(Task(uuid: "t"), forKey: "t", inCollection: kCollection_Tasks)
        cloud.setTag("t", forNodeID: node.uuid, withIdentifier: "task")
        cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
        cloud.markNodeAsNeedsDownload(node.uuid, components: .all)
        cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .all)
        try cloud.delete(node)
      }
      #expect(try await a.queueCount() == 0)
    }
  }

  /// => without a queue the block runs on the main queue, otherwise on the given one
  @Test func downloads_takeAnyQueue_orNone() async throws {
    try await run { a, zdc, user in
      try await a.create("/f")
      try await a.sync()
      let node = try await a.node("/f")
      let manager = try #require(zdc.downloadManager)
      let options = ZDCDownloadOptions()
      let key = DispatchSpecificKey<String>()
      DispatchQueue.main.setSpecific(key: key, value: "main")
      let mine = DispatchQueue(label: "an app's own")
      mine.setSpecific(key: key, value: "mine")
      for (queue, label) in [(nil, "main"), (mine, "mine"), (DispatchQueue.global(), nil)]
        as [(DispatchQueue?, String?)]
      {
        let ran: String? = await withCheckedContinuation { continuation in
          let done: ZDCDownloadManager.DataCompletion = { info, file, error in
            #expect(info != nil && file != nil && error == nil)
            continuation.resume(returning: DispatchQueue.getSpecific(key: key))
          }
          if let queue {
            manager.downloadNodeData(node, options: options, completionQueue: queue, completionBlock: done)
          } else {
            manager.downloadNodeData(node, options: options, completionBlock: done)
          }
        }
        #expect(ran == label)
      }
      let thumbnail: Data? = await withCheckedContinuation { continuation in
        manager.downloadNodeMeta(node, components: [.thumbnail], options: options) { _, _, thumbnail, _ in
          continuation.resume(returning: thumbnail)
        }
      }
      #expect(thumbnail == nil)
    }
  }

  @Test func theThumbnailManager_isTheImageManager() async throws {
    try await run { a, zdc, user in
      let seed = Seed001(localUserID: user, list: List())
      seed.zdc = zdc
      let manager: ZDCImageManager? = seed.theThumbnailManager()
      #expect(manager != nil)
    }
  }

  // MARK: The disk

  /// - the app reads a node's content from the disk manager, as the fragment does
  @Test func contentFromTheDiskManager_isUploaded() async throws {
    try await run { a, zdc, user in
      let seed = Seed000(localUserID: user)
      let node = try await a.create("/f")
      #expect(seed.dataFromACryptoFile(zdc: zdc, node: node) == nil)
      let disk = try #require(zdc.diskManager)
      try disk.importNodeData(ZDCDiskImport(cleartextData: Data("kept".utf8)), for: node)
      let given = try #require(seed.dataFromACryptoFile(zdc: zdc, node: node))
      zdc.delegate = ContentGiver(given)
      try await a.sync()
      let file = try await #require(zdc.downloadManager).downloadNodeData(node).cryptoFile
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == Data("kept".utf8))
      disk.deleteFileIfUnmanaged(file.fileURL)
    }
  }

  /// => the app deletes a downloaded file itself, unless it asked the disk manager to keep it
  @Test func aDownloadedFile_isDeleted_unlessItIsManaged() async throws {
    try await run { a, zdc, user in
      try await a.create("/f")
      try await a.sync()
      let node = try await a.node("/f")
      let disk = try #require(zdc.diskManager)
      for isKept in [false, true] {
        let options = ZDCDownloadOptions()
        options.cacheToDiskManager = isKept
        let file = try await #require(zdc.downloadManager).downloadNodeData(node, options: options).cryptoFile
        #expect(FileManager.default.fileExists(atPath: file.fileURL.path))
        #expect(disk.hasNodeData(node.uuid) == isKept)
        disk.deleteFileIfUnmanaged(file.fileURL)
        #expect(FileManager.default.fileExists(atPath: file.fileURL.path) == isKept)
      }
    }
  }

  /// - a block that returns nothing reads without `try`, as the seeds do, and the database fails
  /// => the status stream reports the failure; a block that returns something throws it
  @Test func aReadWithoutTry_reportsItsErrorInTheStatusStream() async throws {
    try await run { a, zdc, user in
      let updates = try #require(zdc.syncManager).statusUpdates
      @Sendable func read() throws {
        let connection = try #require(zdc.databaseManager).uiDatabaseConnection
        var seen = false
        connection.read { transaction in
          seen = transaction.object(forKey: "k", inCollection: "nobody registered this") != nil
        }
        #expect(!seen)
        #expect(throws: ZDCError.self) {
          try connection.read { $0.object(forKey: "k", inCollection: "nobody registered this") != nil }
        }
      }
      try read()
      for await update in updates {
        guard case .error(_, let error as ZDCError) = update else { continue }
        #expect(error.code == .collectionNotRegistered)
        break
      }
    }
  }
}
