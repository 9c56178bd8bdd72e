import Foundation
import Synchronization
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The delegate of document 003: its methods, which of them an app must have, and that calls reach the app's methods.
@Suite struct SeedDelegateTests {
  /// The document's spelling of each method matches the protocol's. With a near miss, the default would be called
  /// instead. The engine's own tests check that it calls them.
  @Test func everyMethodOfTheDocument_hasTheProtocolsSignature() async throws {
    try await TestWorld.run { world in
      let app = Seed003()
      try await world.device(delegate: app) { a in
        try await a.create("/f")
        try await a.sync()
        let zdc = try a.zdc
        let user = try a.localUserID
        let node = try await a.node("/f")
        let (info, file) = try await #require(zdc.downloadManager).downloadNodeData(node)
        try FileManager.default.removeItem(at: file.fileURL)
        let called = app.calls
        let delegate: any ZeroDarkCloudDelegate = app
        let path = ZDCTreesystemPath(pathComponents: ["f"])
        delegate.didBackgroundDownloadNodeMeta(
          node, at: path, with: .all, header: info, metadata: nil, thumbnail: nil)
        delegate.didBackgroundDownloadNodeData(node, at: path, with: file)
        _ = await delegate.preferredNodeIDsForPullingRcrds()
        try await a.write { transaction, cloud in
          let me = try #require(cloud.user(id: user))
          _ = try delegate.data(for: node, at: path, transaction: transaction)
          _ = try delegate.metadata(for: node, at: path, transaction: transaction)
          _ = try delegate.thumbnail(for: node, at: path, transaction: transaction)
          try delegate.didPushNodeData(node, at: path, transaction: transaction)
          _ = try delegate.data(forMessage: node, transaction: transaction)
          try delegate.didSendMessage(node, toRecipient: me, transaction: transaction)
          try delegate.didDiscoverNewNode(node, at: path, transaction: transaction)
          try delegate.didDiscoverModifiedNode(node, with: .data, at: path, transaction: transaction)
          try delegate.didDiscoverMovedNode(node, from: path, to: path, transaction: transaction)
          try delegate.didDiscoverDeletedNode(node, at: path, timestamp: nil, transaction: transaction)
          try delegate.didDiscoverDeletedDirtyNode(
            node, dirtyAncestors: [], timestamp: nil, transaction: transaction)
          try delegate.didDiscoverConflict(.data, forNode: node, atPath: path, transaction: transaction)
        }
        #expect(
          app.calls.dropFirst(called.count) == [
            "backgroundMeta", "backgroundData", "preferred", "data", "metadata", "thumbnail", "pushed", "message",
            "sent",
            "new", "modified", "moved", "deleted", "deletedDirty", "conflict",
          ])
      }
    }
  }

  /// An app that has the later name of `didSendMessage` only.
  @Test func didSendMessage_callsItsLaterName_withTheRecipient() async throws {
    try await TestWorld.run { world in
      let app = LaterDelegate()
      let bob = try await world.device("bob", account: "bob")
      let recipient = try bob.localUserID
      try await world.device(delegate: app) { a in
        try await a.meet(bob)
        let message = try await a.send("hello", to: bob)
        try await a.sync()
        #expect(app.sent.map(\.message) == [message.uuid] && app.sent.map(\.recipient) == [recipient])
      }
    }
  }

  /// => seven methods are enough for a delegate; each of the others has a default
  @Test func sevenMethods_areEnough() async throws {
    try await TestWorld.run { world in
      let app = SmallestDelegate()
      try await world.device(delegate: app) { a in
        try await a.create("/f")
        try await a.sync()
        #expect(app.pushed == ["f"])
        let node = try await a.node("/f")
        #expect(node.cloudDataInfo?.metadataSize == 0 && node.cloudDataInfo?.thumbnailSize == 0)
        let delegate: any ZeroDarkCloudDelegate = app
        #expect(await delegate.preferredNodeIDsForPullingRcrds() == nil)
        delegate.didReconnectToInternet()
        let user = try a.localUserID
        try await a.write { transaction, cloud in
          let me = try #require(cloud.user(id: user))
          // Without the method for messages, the app is asked for the data as for any node.
          #expect(try delegate.data(forMessage: node, transaction: transaction) != nil)
          try delegate.didSendMessage(node, toRecipient: me, transaction: transaction)
          try delegate.didDiscoverDeletedDirtyNode(
            node, dirtyAncestors: [], timestamp: nil, transaction: transaction)
        }
      }
    }
  }
}

/// A delegate with the required methods only.
private final class SmallestDelegate: ZeroDarkCloudDelegate {
  private let names = Mutex<[String]>([])

  var pushed: [String] { names.withLock { $0 } }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData {
    ZDCData(data: Data("data".utf8))
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    names.withLock { $0.append(path.nodeName) }
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {}

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}
}

/// A delegate that has the later name of `didSendMessage`, and not the seed's.
private final class LaterDelegate: ZeroDarkCloudDelegate {
  private let recipients = Mutex<[(message: String, recipient: String)]>([])

  var sent: [(message: String, recipient: String)] { recipients.withLock { $0 } }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData {
    ZDCData(data: Data("data".utf8))
  }

  func didPushNodeData(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: YapDatabaseReadWriteTransaction
  ) {
    recipients.withLock { $0.append((message.uuid, recipient.uuid)) }
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {}

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {}

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}
}

extension TestWorld {
  /// Runs `body` with a device that uses the given delegate.
  func device(
    delegate: any ZeroDarkCloudDelegate, _ body: @Sendable (TestDevice) async throws -> Void
  ) async throws {
    let device = try await TestDevice("A", server: server, clock: clock, delegate: delegate) { config in
      config.register(Task.self, inCollection: kCollection_Tasks)
      config.register(Recipe.self, inCollection: Recipe.collection)
    }
    try await device.createAccount()
    do {
      try await body(device)
    } catch {
      try await device.close()
      throw error
    }
    try await device.close()
  }
}
