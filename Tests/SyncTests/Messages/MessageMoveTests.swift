import Foundation
import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages that their recipient moves from the inbox into the home trunk.
struct MessageMoveTests {
  typealias Pair = MessageTests.Pair

  /// Gives Bob a message, which is in the inbox on both of his devices.
  private struct Stage {
    let pair: Pair
    let tablet: TestDevice
    let message: ZDCNode

    init(_ world: TestWorld, _ text: String = "hello") async throws {
      pair = try await Pair(world)
      tablet = try await world.device("bob's tablet", account: "bob")
      try await pair.bob.create("/chat")
      try await pair.alice.send(text, to: pair.bob)
      for device in [pair.alice, pair.bob, tablet] { try await device.sync() }
      message = try #require(try await pair.bob.inbox().first)
    }

    func move(_ path: String = "/chat/first") async throws {
      try await pair.bob.write { [message] _, cloud in
        let path = ZDCTreesystemPath(pathComponents: path.split(separator: "/").map(String.init))
        _ = try cloud.moveNode(message, to: path)
      }
    }
  }

  @Test(arguments: ["hello", String(repeating: "x", count: 1_000_000)])
  func aMovedMessage_keepsContentLinksTagsAndSender_onAllDevices(text: String) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world, text)
      let (bob, tablet, alice) = (stage.pair.bob, stage.tablet, stage.pair.alice)
      let copy = try #require(try await tablet.inbox().first)
      for (device, node) in [(bob, stage.message), (tablet, copy)] {
        try await device.write { _, cloud in
          cloud.setTag("mine", forNodeID: node.uuid, withIdentifier: "t")
          try cloud.linkNodeID(node.uuid, toKey: "letter", inCollection: "letters")
        }
      }
      let sent = bob.network.requests.reduce(0) { $0 + $1.bytesSent }
      try await stage.move()
      for device in [bob, tablet, bob] { try await device.sync() }
      #expect(bob.network.requests.reduce(0) { $0 + $1.bytesSent } - sent < 100_000)
      for (device, node) in [(bob, stage.message), (tablet, copy)] {
        let moved = try await device.node("/chat/first")
        #expect(moved.uuid == node.uuid)
        #expect(moved.senderID == (try alice.localUserID))
        #expect(moved.isRead == nil)
        #expect(try await device.inbox().isEmpty)
        let tag = try await device.write { _, cloud in cloud.tag(forNodeID: node.uuid, withIdentifier: "t") as? String }
        #expect(tag == "mine")
        let linked = try await device.write { _, cloud in
          cloud.linkedNode(forKey: "letter", inCollection: "letters").map {
            (uuid: $0.uuid, path: cloud.path(for: $0)?.fullPath(), parent: cloud.parentNode($0)?.name)
          }
        }
        #expect(linked?.uuid == node.uuid && linked?.path == "home:/chat/first" && linked?.parent == "chat")
        try await device.download()
        let content = try await device.write { transaction, _ in
          try transaction.object(TestContent.self, forKey: node.uuid, inCollection: TestContent.collection)
        }
        #expect(content.map { String(decoding: $0.data, as: UTF8.self) } == text)
        let lines = try await device.tree().split(separator: "\n")
        #expect(lines.count == 2 && lines[1].hasPrefix("/chat/first"), "\(lines.map { $0.prefix(40) })")
        #expect(try await device.queueCount() == 0)
      }
      let fresh = try await world.device("bob's new phone", account: "bob")
      try await fresh.sync()
      #expect(try await fresh.node("/chat/first").senderID == (try alice.localUserID))
    }
  }

  /// - the moved message is delivered once more, and marked as read before it moves
  /// => it is not taken over again
  @Test func aMovedMessage_isNotTakenOverAgain() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.bob.create("/chat")
      try await pair.alice.send("hello", to: pair.bob)
      let envelope = try await pair.alice.sendKeepingEnvelope()
      try await pair.bob.sync()
      try await pair.bob.mark(true)
      let message = try #require(try await pair.bob.inbox().first)
      try await pair.bob.write { _, cloud in
        _ = try cloud.moveNode(message, to: ZDCTreesystemPath(pathComponents: ["chat", "first"]))
      }
      try await pair.bob.sync()
      #expect(try await pair.alice.api.deliver([envelope]) == [.delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.inbox().isEmpty)
      #expect(try await pair.bob.waiting().isEmpty)
    }
  }

  /// The device dies after each of its transactions in turn.
  @Test(arguments: 1...10) func aMoverThatDies_movesAfterItsNextStart(commits: Int) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      try await stage.move()
      stage.pair.bob.die(afterCommits: commits)
      _ = try? await stage.pair.bob.sync()
      try await stage.pair.bob.relaunch()
      for device in [stage.pair.bob, stage.tablet] { try await device.sync() }
      for device in [stage.pair.bob, stage.tablet] {
        #expect(try await device.node("/chat/first").senderID == (try stage.pair.alice.localUserID))
        #expect(try await device.inbox().isEmpty)
      }
    }
  }

  /// - Bob moves a message on one device; another one of his takes over the sender's burn of it, before the move is sent
  /// => a message that the app keeps is there on all of his devices
  @Test func aBurnedMessageThatTheAppKeeps_movesWithItsSender() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob, tablet) = (stage.pair.alice, stage.pair.bob, stage.tablet)
      try await bob.download()
      try await stage.move()
      let sent = try #require(
        try await alice.write { _, cloud in
          try cloud.trunkNode(.outbox).flatMap { try cloud.children(ofNodeID: $0.uuid).first }
        })
      try await alice.burn(sent)
      for device in [alice, tablet, bob] { try await device.sync() }
      #expect(bob.recorder.take().contains { $0.hasPrefix("deletedDirty") })
      try await bob.reviveAll()
      for device in [bob, tablet] { try await device.sync() }
      try await tablet.download()
      for device in [bob, tablet] {
        let kept = try await device.node("/chat/first")
        #expect(kept.quarantine == nil, "\(device.name)")
        #expect(kept.senderID == (try alice.localUserID), "\(device.name)")
        #expect(try await device.content(of: "/chat/first")?.data == Data("hello".utf8), "\(device.name)")
        #expect(try await device.inbox().isEmpty, "\(device.name)")
        #expect(try await device.queueCount() == 0, "\(device.name)")
      }
    }
  }

  @Test func onlyMessagesOfTheInboxMove_andOnlyHome() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.pair.alice, stage.pair.bob)
      let sent = try #require(
        try await alice.write { _, cloud in
          try cloud.trunkNode(.outbox).flatMap { try cloud.children(ofNodeID: $0.uuid).first }
        })
      await #expect(throws: ZDCCloudError.self) {
        try await alice.write { _, cloud in
          _ = try cloud.moveNode(sent, to: ZDCTreesystemPath(pathComponents: ["sent"]))
        }
      }
      for trunk in [ZDCTreesystemTrunk.prefs, .outbox] {
        await #expect(throws: ZDCCloudError.self) {
          try await bob.write { _, cloud in
            _ = try cloud.moveNode(
              stage.message, to: ZDCTreesystemPath(pathComponents: ["x"], trunk: trunk))
          }
        }
      }
      let chat = try await bob.node("/chat")
      await #expect(throws: ZDCCloudError.self) {
        try await bob.write { _, cloud in
          _ = try cloud.moveNode(chat, to: ZDCTreesystemPath(pathComponents: ["chat"], trunk: .inbox))
        }
      }
    }
  }

  /// - a member of a shared branch writes a record that names a sender
  /// => the owner's devices show none, also after the owner has changed the node
  @Test func aMembersRecord_namesNoSender() async throws {
    try await TestWorld.run { world in
      let moving = try await ZoneMoveTests.Moving(world)
      let (alice, bob) = (moving.alice, moving.bob)
      let path = try await moving.top() + "/old"
      let node = try await bob.node(path)
      try await bob.edit(node, burnMs: 1)
      try await bob.sync()
      let forged = ReceivedMessage(
        sender: try moving.people.carol.userID, senderGen: 1, device: 1, seq: 1, id: .random())
      try await bob.database.write { transaction in
        var row = try #require(try transaction.nodes.node(uuid: node.uuid))
        var extras = row.unused ?? RecordPrivate(name: nil, createdMs: 0)
        extras.received = forged
        extras.movedFrom = MovedNode(tree: Bytes32(labelledHash: "tree"), node: .random())
        row.unused = extras
        try transaction.nodes.update(row)
      }
      try await bob.edit(node, burnMs: 2)
      for device in [bob, alice] { try await device.sync() }
      let old = try await alice.node("/list/old")
      let known = try await alice.database.read { transaction in
        try transaction.nodes.node(uuid: old.uuid)?.unused?.received
      }
      #expect(try await bob.node(path).senderID == (try moving.people.carol.localUserID))
      #expect(known == nil && old.senderID == nil)
      try await alice.rename("/list/old", to: "new")
      let phone = try await world.device("alice's phone")
      for device in [alice, phone] {
        try await device.sync()
        #expect(try await device.node("/list/new").senderID == nil)
      }
    }
  }
}

extension TestDevice {
  fileprivate func inbox() async throws -> [ZDCNode] {
    try await write { _, cloud in
      try cloud.trunkNode(.inbox).map { try cloud.children(ofNodeID: $0.uuid) } ?? []
    }
  }

  /// Queues another version of a node's record.
  fileprivate func edit(_ node: ZDCNode, burnMs: UInt64) async throws {
    try await write { _, cloud in
      guard var changed = cloud.node(id: node.uuid) else { throw TestFailure("the node is gone") }
      changed.burnDate = Date(ms: burnMs)
      _ = try cloud.modifyNode(changed)
    }
  }
}
