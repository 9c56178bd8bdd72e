import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Runs the code of the document "Collaboration": Alice invites Bob to her list, and Bob grafts it into his tree.
@Suite struct Seed004Tests {
  private let groceries = ZDCTreesystemPath(pathComponents: ["Groceries"])

  private struct Person {
    let box: Seed004Box
    let device: TestDevice
    let seed: Seed004
    let zdc: ZeroDarkCloud
    let user: String

    init(_ name: String, _ world: TestWorld, words: [String]? = nil) async throws {
      let box = Seed004Box()
      self.box = box
      device = try await TestDevice(name, server: world.server, clock: world.clock, delegate: box) { config in
        config.register(Task.self, inCollection: kCollection_Tasks)
        config.register(List.self, inCollection: kCollection_Lists)
      }
      if let words { try await device.login(words: words) } else { box.words = try await device.createAccount() }
      (seed, zdc, user) = (Seed004(), try device.zdc, try device.localUserID)
      (seed.zdc, box.inner) = (zdc, seed)
      try await device.sync()
    }

    /// Makes the user known to this device, and lets messages of theirs in.
    func meet(_ other: Person) async throws {
      _ = try await #require(zdc.userManager).fetchUser(id: other.user, for: user)
      try await #require(zdc.syncManager).acceptMessages(fromUserID: other.user, forLocalUserID: user)
    }

    func node(_ path: ZDCTreesystemPath) async throws -> ZDCNode? {
      try await device.database.read { [zdc, user] transaction in
        zdc.cloudTransaction(transaction, forLocalUserID: user)?.node(path: path)
      }
    }

    /// The invitation in the inbox, as the app reads it.
    func invitation() async throws -> Invitation {
      let message = try await device.database.read { [zdc, user] transaction in
        let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
        return try #require(try cloud.trunkNode(.inbox).map { try cloud.children(ofNodeID: $0.uuid) }?.first)
      }
      let file = try await #require(zdc.downloadManager).downloadNodeData(message).cryptoFile
      defer { try? FileManager.default.removeItem(at: file.fileURL) }
      let json = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
      let content = try JSONDecoder().decode([String: String].self, from: json)
      return Invitation(
        receiverID: user, senderID: try #require(message.senderID), title: try #require(content["title"]),
        cloudID: try #require(content["cloudID"]), cloudPath: try #require(content["cloudPath"]))
    }
  }

  private func createList(_ alice: Person) async throws -> ZDCNode {
    let list = List(uuid: "list", title: "Groceries")
    return try await alice.device.database.write { [groceries] transaction in
      let cloud = try #require(alice.zdc.cloudTransaction(transaction, forLocalUserID: alice.user))
      let node = try cloud.createNode(withPath: groceries)
      for name in ["D", "E", "F", "G"] { try cloud.createNode(withPath: groceries.appendingComponent(name)) }
      transaction.setObject(list, forKey: list.uuid, inCollection: kCollection_Lists)
      try cloud.linkNodeID(node.uuid, toKey: list.uuid, inCollection: kCollection_Lists)
      return node
    }
  }

  @Test func seed004_invitingAndAccepting() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = (try await Person("Alice", world), try await Person("Bob", world))
      try await alice.meet(bob)
      try await bob.meet(alice)
      let node = try await createList(alice)
      // Nothing was sent yet: the message waits for the list, and for the access to it.
      alice.seed.inviting(zdc: alice.zdc, localUserID: alice.user, bobsUserID: bob.user, listNodeID: node.uuid)
      try await alice.device.database.write { _ in }
      try await alice.device.sync()
      #expect(try await alice.device.queueCount() == 0)
      try await bob.device.sync()
      let invitation = try await bob.invitation()
      #expect(invitation.senderID == alice.user && invitation.title == "Groceries")
      #expect(invitation.cloudID == node.cloudID && !invitation.cloudPath.contains("Groceries"))

      bob.seed.accepting(zdc: bob.zdc, invitation: invitation)
      try await bob.device.database.write { _ in }
      let grafted = try #require(try await bob.node(groceries))
      #expect(grafted.cloudID == node.cloudID && grafted.anchor?.userID == alice.user)
      try await bob.device.sync()
      for name in ["D", "E", "F", "G"] { #expect(try await bob.node(groceries.appendingComponent(name)) != nil) }

      let phone = try await Person("Bob's phone", world, words: bob.box.words)
      #expect(try await phone.node(groceries)?.uuid == grafted.uuid)
      #expect(try await phone.node(groceries.appendingComponent("D")) != nil)
      try await phone.device.database.write { [groceries] transaction in
        let cloud = try #require(phone.zdc.cloudTransaction(transaction, forLocalUserID: phone.user))
        try cloud.createNode(withPath: groceries.appendingComponent("H"))
      }
      try await phone.device.sync()
      try await alice.device.sync()
      let created = try #require(try await alice.node(groceries.appendingComponent("H")))
      #expect(created.anchor == nil)
      for person in [alice, bob, phone] { try await person.device.close() }
    }
  }
}

/// Breaks a cycle: the seed's delegate needs the account, and the account needs a delegate.
private final class Seed004Box: ZeroDarkCloudDelegate {
  nonisolated(unsafe) var inner: Seed004!
  nonisolated(unsafe) var words: [String]?

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    ZDCData(data: Data(path.nodeName.utf8))
  }
  func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    inner.data(forMessage: message, transaction: transaction)
  }
  func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    inner.didSendMessage(message, toRecipient: recipient, transaction: transaction)
  }
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws {}
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws {
    inner.didDiscoverNewNode(node, at: path, transaction: transaction)
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
