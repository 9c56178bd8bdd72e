import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A list and its three people, from the invitation to the removal, with the calls of the document "Collaboration".
@Suite struct Seed004StoryTests {
  typealias Person = Seed004Person

  /// - Alice invites Bob and Carol, then renames and moves her list; Bob accepts; Carol accepts offline; all edit; Bob
  ///   leaves; Alice removes Carol
  /// => one list with all changes that were sent; Carol's last change, which she may not send, is in her journal
  @Test(arguments: Seed004Story.Disturbance.allCases)
  func oneListForAll(_ disturbance: Seed004Story.Disturbance) async throws {
    try await TestWorld.run { world in
      let story = try await Seed004Story(world, disturbance)
      try await story.inviteBoth()
      try await story.renameAndMove()
      try await story.acceptBoth()
      try await story.editAll()
      try await story.bobLeaves()
      try await story.carolIsRemoved()
      try await story.expectOneList(world)
    }
  }

  /// - Alice shares a list and sends the invitation in one transaction, and her device dies after each of the next ones
  /// => Bob gets one invitation each time, and never before he is in the list
  @Test(arguments: [TestDevice.Network.dead, .alive])
  func theOwnerDiesBetweenShareAndInvitation(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let (alice, bob) = (try await Person.create("Alice", world), try await Person.create("Bob", world))
      try await alice.meet(bob)
      try await bob.meet(alice)
      var (kills, between) = (0, 0)
      for commits in 0..<20 {
        let list = try await alice.createList(named: "list\(commits)")
        try await alice.device.sync()
        try await alice.invite(bob, to: list)
        alice.device.die(afterCommits: commits, network: network)
        do { try await alice.device.sync() } catch { #expect(alice.device.isDead, "\(error)") }
        let isKilled = alice.device.isDead
        if isKilled { kills += 1 }
        try await alice.relaunch()
        try await bob.device.sync()
        let isListed = try await alice.device.members(bob.device, of: "/list\(commits)") == ["Bob": "rw"]
        if isListed, try await bob.messages().count == commits { between += 1 }
        try await alice.device.sync()
        #expect(try await alice.device.queueCount() == 0)
        try await bob.device.sync()
        #expect(try await bob.messages().count == commits + 1)
        for message in try await bob.messages() {
          let invitation = try await bob.invitation(in: message)
          if invitation.cloudID == list.cloudID { try await bob.accept(invitation) }
        }
        try await bob.device.sync()
        #expect(try await bob.device.branch("/list\(commits)") == alice.device.branch("/list\(commits)"))
        if !isKilled { break }
      }
      #expect(kills >= 3 && kills < 20 && between >= 1, "\(kills) \(between)")
      for person in [alice, bob] { try await person.device.close() }
    }
  }
}

/// The steps of the story. Each is sent, and read by the others, under the same disturbance.
struct Seed004Story: Sendable {
  typealias Person = Seed004Person

  enum Disturbance: CaseIterable {
    case none
    /// While one person sends a step, the devices of the others have no network.
    case othersAreOffline
    /// Each device loses one answer in each attempt to sync, that of a later request each time.
    case answersAreLost
    /// Each device dies in each attempt to sync, after one more transaction each time, with or without its network.
    case devicesDie, processesDie
  }

  let (alice, bob, carol): (Person, Person, Person)
  let list: ZDCNode
  let disturbance: Disturbance

  init(_ world: TestWorld, _ disturbance: Disturbance) async throws {
    alice = try await Person.create("Alice", world)
    bob = try await Person.create("Bob", world)
    carol = try await Person.create("Carol", world)
    for guest in [bob, carol] {
      try await alice.meet(guest)
      try await guest.meet(alice)
    }
    list = try await alice.createList(named: "Groceries")
    self.disturbance = disturbance
  }

  // MARK: Steps

  func inviteBoth() async throws {
    for guest in [bob, carol] { try await step(alice) { try await alice.invite(guest, to: list) } }
    #expect(Set(alice.app.sent.map(\.recipient)) == [bob.user, carol.user])
    for guest in [bob, carol] { #expect(try await guest.invitation().cloudID == list.cloudID) }
  }

  func renameAndMove() async throws {
    try await step(alice) {
      try await alice.device.create("/House")
      try await alice.device.rename("/Groceries", to: "Food")
    }
    try await step(alice) { try await alice.device.move("/Food", to: "/House/Food") }
  }

  func acceptBoth() async throws {
    let (first, second) = (try await bob.invitation(), try await carol.invitation())
    try await step(bob) { try await bob.accept(first) }
    try await step(carol) {
      carol.device.network.isOffline = true
      try await carol.accept(second)
      _ = try? await carol.device.sync()
      #expect(try await carol.device.node("/Groceries").cloudID == list.cloudID)
      carol.device.network.isOffline = false
    }
    try await expectEqual(bob, carol)
  }

  func editAll() async throws {
    try await bob.device.rename("/Groceries/E", to: "Eggs")
    try await bob.device.create("/Groceries/Bread", "by Bob")
    try await carol.device.delete("/Groceries/G")
    try await carol.device.create("/Groceries/Cheese", "by Carol")
    try await step(alice) { try await alice.device.edit("/House/Food/D", "by Alice") }
    for guest in [bob, carol] { try await step(guest) {} }
    try await expectEqual(bob, carol)
  }

  /// Alice and Carol have changes that they have not sent when Bob leaves.
  func bobLeaves() async throws {
    try await alice.device.create("/House/Food/Apples", "by Alice")
    try await carol.device.edit("/Groceries/F", "by Carol")
    try await step(bob) { try await bob.device.delete("/Groceries") }
    #expect(try await bob.device.tree() == "")
    #expect(try await alice.device.members(bob.device, carol.device, of: "/House/Food") == ["Carol": "rw"])
    try await expectEqual(carol)
  }

  func carolIsRemoved() async throws {
    try await carol.device.create("/Groceries/Late", "by Carol")
    try await step(alice) {
      try await alice.device.unshare("/House/Food", with: carol.device)
      try await alice.device.create("/House/Food/Last", "by Alice")
    }
    #expect(try await carol.device.tree() == "")
    let journal = try await carol.device.write { _, cloud in cloud.mergeJournal() }
    #expect(journal.map(\.kind) == [.accessLost])
    #expect(try await alice.device.members(bob.device, carol.device, of: "/House/Food").isEmpty)
  }

  // MARK: The end

  private static let all = """
    /House
    /House/Food  "Groceries"
    /House/Food/Apples  "by Alice"
    /House/Food/Bread  "by Bob"
    /House/Food/Cheese  "by Carol"
    /House/Food/D  "by Alice"
    /House/Food/Eggs  "E"
    /House/Food/F  "by Carol"
    /House/Food/Last  "by Alice"
    """

  func expectOneList(_ world: TestWorld) async throws {
    let phone = try await Person.create("Alice's phone", world, words: alice.app.words)
    for person in [alice, phone] {
      try await person.device.download()
      let tree = try await person.device.tree(versions: false)
      #expect(tree == Self.all)
    }
    for person in [alice, bob, carol, phone] {
      #expect(try await person.device.queueCount() == 0, "\(person.device.name)")
      #expect(try await person.device.securityErrors() == [], "\(person.device.name)")
      try await person.device.close()
    }
  }

  /// Expects that guests who are in the list have it as Alice has.
  private func expectEqual(_ guests: Person...) async throws {
    try await TestWorld.settle([alice.device] + guests.map(\.device))
    let items = try await alice.device.branch("/House/Food", versions: true)
    for guest in guests { #expect(try await guest.device.branch("/Groceries", versions: true) == items) }
  }

  /// A change of one person, which they send and the others read. Then all of them send what they did meanwhile.
  private func step(_ person: Person, _ change: () async throws -> Void) async throws {
    let others: [Person] = [alice, bob, carol].filter { $0 !== person }
    try await change()
    if disturbance == .othersAreOffline {
      for other in others {
        other.device.network.isOffline = true
        await #expect(throws: (any Error).self) { try await other.device.sync() }
      }
    }
    try await person.sync(disturbance)
    for other in others { other.device.network.isOffline = false }
    for other in others + [person] { try await other.sync(disturbance) }
  }
}

extension Seed004Person {
  /// Creates a list with four items.
  fileprivate func createList(named title: String) async throws -> ZDCNode {
    try await createList(List(uuid: title, title: title))
  }

  fileprivate func sync(_ disturbance: Seed004Story.Disturbance) async throws {
    switch disturbance {
    case .none, .othersAreOffline: try await device.sync()
    case .answersAreLost:
      try await syncLosingAnswers(method: "POST")
      try await syncLosingAnswers(method: nil)
    case .devicesDie: try await syncDying(.dead)
    case .processesDie: try await syncDying(.alive)
    }
  }

  private func syncLosingAnswers(method: String?) async throws {
    for occurrence in 1..<60 {
      device.network.fail(.loseResponse, method, occurrence: occurrence)
      do { try await device.sync() } catch { #expect(error is TransportError, "\(error)") }
      guard device.network.hasStruck else { return device.network.restoreNetwork() }
      clock.advance(by: .seconds(600))
    }
    throw TestFailure("\(device.name) does not come to rest")
  }

  private func syncDying(_ network: TestDevice.Network) async throws {
    for commits in 0..<60 {
      device.die(afterCommits: commits, network: network)
      do { try await device.sync() } catch { #expect(device.isDead, "\(error)") }
      let isDead = device.isDead
      try await relaunch()
      guard isDead else { return }
      clock.advance(by: .seconds(600))
    }
    throw TestFailure("\(device.name) does not come to rest")
  }
}
