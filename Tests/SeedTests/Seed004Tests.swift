import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Runs the code of the document "Collaboration": Alice invites Bob to her list, and Bob grafts it into his tree.
@Suite struct Seed004Tests {
  typealias Person = Seed004Person

  private let groceries = ZDCTreesystemPath(pathComponents: ["Groceries"])

  /// Two people who know each other, and Alice's list.
  private func friends(_ world: TestWorld) async throws -> (alice: Person, bob: Person, list: ZDCNode) {
    let (alice, bob) = (try await Person.create("Alice", world), try await Person.create("Bob", world))
    try await alice.meet(bob)
    try await bob.meet(alice)
    return (alice, bob, try await alice.createList())
  }

  @Test func seed004_invitingAndAccepting() async throws {
    try await TestWorld.run { world in
      let (alice, bob, node) = try await friends(world)
      // Nothing was sent yet: the message waits for the list, and for the access to it.
      try await alice.invite(bob, to: node)
      try await alice.device.sync()
      #expect(try await alice.device.queueCount() == 0)
      try await bob.device.sync()
      let invitation = try await bob.invitation()
      #expect(invitation.senderID == alice.user && invitation.title == "Groceries")
      #expect(invitation.cloudID == node.cloudID && !invitation.cloudPath.contains("Groceries"))

      try await bob.accept(invitation)
      let grafted = try #require(try await bob.node(groceries))
      #expect(grafted.cloudID == node.cloudID && grafted.anchor?.userID == alice.user)
      try await bob.device.sync()
      for name in ["D", "E", "F", "G"] { #expect(try await bob.node(groceries.appendingComponent(name)) != nil) }

      let phone = try await Person.create("Bob's phone", world, words: bob.app.words)
      #expect(try await phone.node(groceries)?.uuid == grafted.uuid)
      #expect(try await phone.node(groceries.appendingComponent("D")) != nil)
      try await phone.device.create("/Groceries/H")
      try await phone.device.sync()
      try await alice.device.sync()
      let created = try #require(try await alice.node(groceries.appendingComponent("H")))
      #expect(created.anchor == nil)
      for person in [alice, bob, phone] { try await person.device.close() }
    }
  }

  /// Compiles without a warning.
  @Test func resultsOfMessagesAndGrafts_mayBeIgnored() async throws {
    try await TestWorld.run { world in
      let (alice, bob, node) = try await friends(world)
      try await alice.invite(bob, to: node)
      try await alice.device.sync()
      try await bob.device.sync()
      let invitation = try await bob.invitation()
      try await bob.device.write { _, cloud in
        let sender = try #require(cloud.user(id: invitation.senderID))
        let remotePath = try #require(ZDCCloudPath(path: invitation.cloudPath))
        try cloud.sendMessage(toRecipients: [sender])
        try cloud.sendSignal(toRecipient: sender)
        try cloud.graftNode(
          withLocalPath: ZDCTreesystemPath(pathComponents: ["Groceries"]), remoteCloudPath: remotePath,
          remoteCloudID: invitation.cloudID, remoteUser: sender)
      }
      #expect(try await bob.node(groceries)?.cloudID == node.cloudID)
      for person in [alice, bob] { try await person.device.close() }
    }
  }

  /// - the app has nothing for a message, as its tag is missing
  /// => the message is parked, and the app is asked again after queueDataUpload, or in the next launch
  @Test(arguments: [false, true], [false, true])
  func nilForAMessage_parksIt(isSignal: Bool, isRelaunched: Bool) async throws {
    try await TestWorld.run { world in
      let (alice, bob, node) = try await friends(world)
      try await alice.device.share("/Groceries", with: bob.device)
      try await alice.device.sync()
      let message = try await alice.send(to: [bob], isSignal: isSignal)
      try await alice.device.sync()
      let waiting = try await alice.device.write { _, cloud in cloud.explainQueue() }
      #expect(!waiting.isEmpty && waiting.contains { $0.reason == .noDataFromApp }, "\(waiting)")
      #expect(alice.app.sent == [])
      try await bob.device.sync()
      #expect(try await bob.messages().isEmpty)

      try await alice.device.write { _, cloud in
        cloud.setTag(node.uuid, forNodeID: message.uuid, withIdentifier: "listNodeID")
        if !isRelaunched { cloud.queueDataUpload(forNodeID: message.uuid, withChangeset: nil) }
      }
      if isRelaunched { try await alice.relaunch() }
      try await alice.device.sync()
      #expect(try await alice.device.queueCount() == 0)
      #expect(alice.app.sent == [Seed004App.Sent(message: message.uuid, recipient: bob.user, tag: node.uuid)])
      try await bob.device.sync()
      #expect(try await bob.invitation().cloudID == node.cloudID)
      for person in [alice, bob] { try await person.device.close() }
    }
  }

  /// - Alice shares with Bob, and writes to Carol, who is in no list
  /// => there is no invitation for Carol, so the app returns nil, until she is listed
  @Test func aRecipientWhoIsNotListed_getsNoInvitation() async throws {
    try await TestWorld.run { world in
      let (alice, bob, node) = try await friends(world)
      let carol = try await Person.create("Carol", world)
      try await alice.meet(carol)
      try await carol.meet(alice)
      try await alice.device.share("/Groceries", with: bob.device)
      try await alice.device.sync()
      let message = try await alice.send(to: [carol], about: node)
      try await alice.device.sync()
      #expect(alice.app.sent == [])
      #expect(try await alice.device.write { _, cloud in cloud.graftInvite(for: node) } != nil)

      try await alice.device.share("/Groceries", with: carol.device)
      try await alice.device.sync()
      try await alice.device.write { _, cloud in
        cloud.queueDataUpload(forNodeID: message.uuid, withChangeset: nil)
      }
      try await alice.device.sync()
      try await carol.device.sync()
      #expect(try await carol.invitation().cloudID == node.cloudID)
      for person in [alice, bob, carol] { try await person.device.close() }
    }
  }

  /// - Bob gets the message at once, Carol not before she lets Alice's messages in again
  /// => each call finds the tag, also the second one, in another launch
  @Test func theTagsOfAMessage_liveUntilItsLastRecipientIsServed() async throws {
    try await TestWorld.run { world in
      let (alice, bob, node) = try await friends(world)
      let carol = try await Person.create("Carol", world)
      try await alice.meet(carol)
      for person in [bob, carol] { try await alice.device.share("/Groceries", with: person.device) }
      try await alice.device.sync()
      try await carol.device.syncManager.declineMessages(
        fromUserID: alice.user, isBlocking: true, forLocalUserID: carol.user)
      let message = try await alice.send(to: [bob, carol], about: node)
      try await alice.device.sync()
      var expected = [Seed004App.Sent(message: message.uuid, recipient: bob.user, tag: node.uuid)]
      #expect(alice.app.sent == expected)

      try await alice.relaunch()
      try await carol.meet(alice)
      world.clock.advance(by: .seconds(86_400))
      try await alice.device.sync()
      expected.append(Seed004App.Sent(message: message.uuid, recipient: carol.user, tag: node.uuid))
      #expect(alice.app.sent == expected)
      for person in [bob, carol] {
        try await person.device.sync()
        #expect(try await person.invitation().cloudID == node.cloudID)
        try await person.device.close()
      }
      try await alice.device.close()
    }
  }

  @Test func theTagsOfASignal_goWithIt() async throws {
    try await TestWorld.run { world in
      let (alice, bob, node) = try await friends(world)
      try await alice.device.share("/Groceries", with: bob.device)
      try await alice.device.sync()
      let signal = try await alice.send(to: [bob], about: node, isSignal: true)
      try await alice.device.sync()
      #expect(alice.app.sent == [Seed004App.Sent(message: signal.uuid, recipient: bob.user, tag: node.uuid)])
      let tag = try await alice.device.write { _, cloud in
        cloud.tag(forNodeID: signal.uuid, withIdentifier: "listNodeID") as? String
      }
      #expect(tag == nil)
      for person in [alice, bob] { try await person.device.close() }
    }
  }
}

extension Seed004Person {
  /// Queues a message or a signal, with the seed's tag if it is about a list.
  fileprivate func send(
    to others: [Seed004Person], about list: ZDCNode? = nil, isSignal: Bool = false
  ) async throws -> ZDCNode {
    let users = others.map { ZDCUser(uuid: $0.user, isLocal: false) }
    return try await device.write { _, cloud in
      let message =
        try isSignal ? cloud.sendSignal(toRecipient: users[0]) : cloud.sendMessage(toRecipients: users)
      if let list { cloud.setTag(list.uuid, forNodeID: message.uuid, withIdentifier: "listNodeID") }
      return message
    }
  }
}
