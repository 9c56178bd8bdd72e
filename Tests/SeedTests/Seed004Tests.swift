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
}
