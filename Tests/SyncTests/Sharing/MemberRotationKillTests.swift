import Foundation
import Testing
import ZDCAccounts
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A member replaces keys or words while the owner changes who has access. One of the two devices is killed, or loses a
/// message.
struct MemberRotationKillTests {
  typealias Rotation = AccountChangeTests.Change

  /// What Alice does for Carol, or against her.
  enum OwnersChange: String, CaseIterable, Sendable {
    case addition, removal, split
  }

  /// - Bob's device is killed after each transaction of a rotation, while Alice's new list is on its way
  /// => the same call completes the rotation; those who have access read everything, also on new devices, and others do not
  @Test(arguments: Rotation.allCases, OwnersChange.allCases)
  func theMemberIsKilled(rotation: Rotation, change: OwnersChange) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world, rotation, change)
      var round = 0
      for network in [TestDevice.Network.dead, .alive] {
        var kills = 0
        for commits in 0..<12 {
          try await stage.prepare(round)
          let isKilled = try await stage.sendList(killingBobAfter: commits, network)
          try await stage.bob.relaunch()
          if isKilled { try await rotation.run(on: stage.bob) }
          try await stage.expectAccess(round)
          round += 1
          if !isKilled { break }
          kills += 1
        }
        #expect(kills >= 2 && kills < 12, "\(kills)")
      }
      try await stage.expectNewDevices(round - 1)
    }
  }

  /// - Bob's request for new keys or words is lost, or its answer; Alice sends her new list at that moment
  /// => Bob's device syncs in any case; a lost request is repeated by the same call, a lost answer by the sync
  @Test(arguments: Rotation.allCases, OwnersChange.allCases)
  func theMemberLosesAMessage(rotation: Rotation, change: OwnersChange) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world, rotation, change)
      for (round, isAnswer) in [false, true].enumerated() {
        try await stage.prepare(round)
        try await stage.sendList(losingAnswer: isAnswer)
        if !isAnswer { try await rotation.run(on: stage.bob) }
        try await stage.expectAccess(round)
      }
      try await stage.expectNewDevices(1)
    }
  }

  /// - Bob replaces keys while Alice's new list is on its way; her device is killed after each of its transactions
  /// => the next sync completes the change, for Bob's new keys
  @Test(arguments: OwnersChange.allCases, [TestDevice.Network.dead, .alive])
  func theOwnerIsKilled(change: OwnersChange, network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world, .keys, change)
      var kills = 0
      for commits in 0..<20 {
        try await stage.prepare(commits)
        let isKilled = try await stage.sendList(dyingAfter: commits, network)
        try await stage.expectAccess(commits)
        if !isKilled { break }
        kills += 1
      }
      #expect(kills >= 3 && kills < 20, "\(kills)")
    }
  }
}

/// Alice's list, in which Bob may write. In each round, Alice changes Carol's access, and Bob replaces keys or words.
private struct Stage: Sendable {
  typealias Rotation = MemberRotationKillTests.Rotation
  typealias OwnersChange = MemberRotationKillTests.OwnersChange

  let people: ListChangeTests.People
  let rotation: Rotation
  let change: OwnersChange

  var world: TestWorld { people.world }
  var alice: TestDevice { people.alice }
  var bob: TestDevice { people.bob }
  var carol: TestDevice { people.carol }

  init(_ world: TestWorld, _ rotation: Rotation, _ change: OwnersChange) async throws {
    let people = try await ListChangeTests.People(world)
    (self.people, self.rotation, self.change) = (people, rotation, change)
    let (alice, bob) = (people.alice, people.bob)
    for path in ["/list", "/list/alice", "/list/bob"] { try await alice.create(path, "0") }
    try await alice.sync()
    try await alice.share("/list", with: bob)
    try await alice.sync()
    try await bob.graft("/list", try await alice.invite("/list"), from: alice)
    try await world.settle(bob, alice)
  }

  /// The path of the branch that Alice shares with Carol, or takes away from her.
  private func path(_ round: Int) -> String { change == .split ? "/list/part\(round)" : "/list" }

  /// Queues Alice's change, and a text of Bob.
  func prepare(_ round: Int) async throws {
    switch change {
    case .addition: try await alice.unshare("/list", with: carol)
    case .removal: try await alice.share("/list", with: carol)
    case .split: for below in ["", "/inner"] { try await alice.create(path(round) + below, "part") }
    }
    try await world.settle(alice, bob)
    if change == .removal {
      try await alice.unshare("/list", with: carol)
    } else {
      try await alice.share(path(round), with: carol)
    }
    try await bob.edit("/list/bob", "bob \(round)")
  }

  // MARK: Both at once

  /// Alice sends her change. Before the server receives it, Bob's device begins with its own, and dies after some
  /// transactions.
  ///
  /// - Returns: Whether Bob's device has died.
  func sendList(killingBobAfter commits: Int, _ network: TestDevice.Network) async throws -> Bool {
    let (bob, rotation) = (bob, rotation)
    let rotate: @Sendable () async throws -> Void = {
      bob.die(afterCommits: commits, network: network)
      do { try await rotation.run(on: bob) } catch { #expect(bob.isDead, "\(error)") }
    }
    alice.network.fail(.before(rotate), "POST", Routes.commits)
    try await alice.sync()
    #expect(alice.network.hasStruck)
    return bob.isDead
  }

  /// Bob's request or its answer is lost. Alice sends her change before the request, or before the answer.
  func sendList(losingAnswer isAnswer: Bool) async throws {
    let (alice, bob, rotation) = (alice, bob, rotation)
    let send: @Sendable () async throws -> Void = { try await alice.sync() }
    bob.network.fail(isAnswer ? .after(send) : .before(send), "POST", Routes.links)
    bob.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", Routes.links)
    await #expect(throws: TransportError.self) { try await rotation.run(on: bob) }
    #expect(bob.network.hasStruck)
    try await bob.sync()
  }

  /// Alice's device dies after some transactions of the sync that sends her change, and is launched again. Before the
  /// server first receives the change, Bob's device makes its own.
  ///
  /// - Returns: Whether Alice's device has died.
  func sendList(dyingAfter commits: Int, _ network: TestDevice.Network) async throws -> Bool {
    let (alice, bob, rotation) = (alice, bob, rotation)
    let rotate: @Sendable () async throws -> Void = { try await rotation.run(on: bob) }
    alice.network.fail(.before(rotate), "POST", Routes.commits)
    alice.die(afterCommits: commits, network: network)
    do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
    let isKilled = alice.isDead
    try await alice.relaunch()
    try await alice.sync()
    #expect(alice.network.hasStruck)
    return isKilled
  }

  // MARK: Afterwards

  /// Expects that Alice and Bob have all texts, and that all access is as Alice's change says.
  func expectAccess(_ round: Int) async throws {
    let users = try #require(try bob.zdc.localUserManager)
    world.setWords(try await users.accessWords(for: bob.localUserID), of: "bob")
    try await alice.edit("/list/alice", "alice \(round)")
    try await world.settle(bob, alice)
    for device in [alice, bob] { #expect(try await device.queueCount() == 0, "\(device.name), \(round)") }
    let tree = try #require(try await alice.branch("/list"))
    #expect(try await bob.branch("/list") == tree)
    #expect(tree.contains("\"alice \(round)\"") && tree.contains("\"bob \(round)\""), "\(tree)")
    try await expectMembers(round)
    try await expectKeys()
  }

  private func expectMembers(_ round: Int) async throws {
    let members = change == .removal ? ["bob": "rw"] : ["bob": "rw", "carol": "rw"]
    #expect(try await alice.members(bob, carol, of: path(round)) == members)
    if change == .split { #expect(try await alice.members(bob, carol, of: "/list") == ["bob": "rw"]) }
    let check = try FormerMemberCheck(world.server)
    for member in [bob, carol] {
      let opened = try check.run(try await member.userKeys)
      #expect(opened > 0, "\(member.name)")
    }
  }

  /// Expects that Bob's compromised keys are retired, and that no list is sealed for one of them.
  private func expectKeys() async throws {
    guard rotation == .compromisedKeys else { return }
    let (user, keys) = (try bob.userID, try await bob.userKeys)
    let entries = try AccessModel(world.server).newest.compactMap { $0.entry(for: user) }
    #expect(entries.count > 1 && entries.allSatisfy { $0.encGen == keys.encGen })
    let retirements = try await bob.retirementCount()
    #expect(retirements == 0)
  }

  /// Expects that a new device of each person has what the others have.
  func expectNewDevices(_ round: Int) async throws {
    let alice = alice
    let tablet = try await world.device("alice's tablet")
    let phone = try await world.device("bob's phone", account: "bob")
    let guest = try await world.device("carol's phone", account: "carol")
    try await world.settle(tablet, phone)
    #expect(try await tablet.tree() == alice.tree())
    #expect(try await phone.branch("/list") == alice.branch("/list"))
    let root = try await alice.cloudID(path(round))
    guard change != .removal else {
      await #expect(throws: ServerError.self) { try await guest.accept(root, of: alice) }
      return
    }
    try await guest.accept(root, of: alice)
    try await guest.download()
    let expected = try #require(try await alice.branch(path(round)))
    #expect(!expected.isEmpty)
    #expect(try await guest.branch("detached:/" + root) == expected)
  }
}
