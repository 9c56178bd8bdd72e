import Foundation
import Synchronization
import Testing
import ZDCAccounts
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// An account is closed that owns a shared branch, has grafted one and has queued work. While that happens, a device is
/// killed or loses a message.
struct ClosedAccountKillTests {
  /// - the device is killed after each of the transactions that close the account
  /// => the same call closes it; all keep what they have, and nothing that was queued is sent or gives access
  @Test(arguments: [TestDevice.Network.dead, .alive]) func killedAnywhere(network: TestDevice.Network) async throws {
    var kills = 0
    for commits in 0..<8 {
      let isKilled = Mutex(false)
      try await TestWorld.run { world in
        let stage = try await Stage(world)
        let hasDied = try await stage.close(dyingAfter: commits, network)
        isKilled.withLock { $0 = hasDied }
        try await stage.expectClosed()
      }
      guard isKilled.withLock({ $0 }) else { break }
      kills += 1
    }
    #expect(kills >= 2 && kills < 8, "\(kills)")
  }

  /// - the request that closes the account is lost, or its answer
  /// => the same call closes it, or the next sync finds it closed
  @Test(arguments: [false, true]) func aLostMessage(isAnswer: Bool) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let alice = stage.alice
      alice.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", Routes.links)
      await #expect(throws: TransportError.self) { try await alice.closeAccount() }
      if !isAnswer { try await alice.closeAccount() }
      try await stage.expectClosed()
    }
  }

  /// - a guest has changed a branch whose owner has closed the account, and the guest's device is killed after each of
  ///   the transactions in which it learns that
  /// => the app is notified, and not again; the change stays on the device and is not sent
  @Test(arguments: [TestDevice.Network.dead, .alive])
  func theGuestIsKilled(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let bob = try await world.device("bob", account: "bob")
      world.mayWait(bob)
      var kills = 0
      for commits in 0..<20 {
        let (name, path) = ("owner \(commits)", "/list\(commits)")
        try await Stage.shareAndClose(path, of: try await world.device(name, account: name), with: bob)
        let before = try world.server.commitCount()
        try await bob.edit(path + "/note", "too late")
        _ = bob.recorder.take()
        bob.die(afterCommits: commits, network: network)
        do { try await bob.sync() } catch { #expect(bob.isDead, "\(error)") }
        let isKilled = bob.isDead
        try await bob.relaunch()
        try await bob.sync()
        let reports = Stage.conflicts(bob)
        #expect(Set(reports) == ["conflict graft_DstUserAccountDeleted \(path)"])
        try await bob.sync()
        #expect(Stage.conflicts(bob).isEmpty)
        let waits = try await bob.write { _, cloud in cloud.explainQueue().map(\.reason) }
        #expect(waits.count == commits + 1 && waits.allSatisfy { $0 == .notAllowed }, "\(waits)")
        #expect(try world.server.commitCount() == before)
        #expect(try await bob.content(of: path + "/note")?.data == Data("too late".utf8))
        if !isKilled { break }
        kills += 1
      }
      #expect(kills >= 2 && kills < 20, "\(kills)")
    }
  }
}

/// Alice's list, which Bob has grafted, and Carol's, which Alice has grafted. Alice has a change of Carol's list whose
/// outcome her device does not know, and unsent ones of both lists. One of them would let Carol read Alice's.
private struct Stage: Sendable {
  let people: ListChangeTests.People
  /// The number of Alice's operations that were never sent.
  private let unsent: Int
  /// The number of commits on the server before Alice closes the account.
  private let commitCount: Int

  var alice: TestDevice { people.alice }

  init(_ world: TestWorld) async throws {
    people = try await ListChangeTests.People(world)
    let (alice, bob, carol) = (people.alice, people.bob, people.carol)
    try await carol.meet(alice)
    try await Self.share("/list", of: alice, with: bob)
    try await Self.share("/hers", of: carol, with: alice)
    try await world.settle(alice, bob, carol)
    try await alice.edit("/hers/note", "sent")
    alice.network.fail(.loseResponse, "POST", Routes.commits)
    await #expect(throws: (any Error).self) { try await alice.push() }
    let sent = try await alice.queueCount()
    try await alice.edit("/list/note", "never")
    try await alice.create("/hers/new", "never")
    try await alice.share("/list", with: carol)
    unsent = try await alice.queueCount() - sent
    commitCount = try world.server.commitCount()
    for device in [alice, bob] { world.mayWait(device) }
  }

  private static func share(_ path: String, of owner: TestDevice, with guest: TestDevice) async throws {
    try await owner.create(path, "list")
    try await owner.create(path + "/note", "1")
    try await owner.sync()
    try await owner.share(path, with: guest)
    try await owner.sync()
    try await guest.graft(path, try await owner.invite(path), from: owner)
  }

  /// Shares a list with a guest, who grafts it, and closes the owner's account.
  static func shareAndClose(_ path: String, of owner: TestDevice, with guest: TestDevice) async throws {
    try await owner.sync()
    try await owner.meet(guest)
    try await share(path, of: owner, with: guest)
    try await guest.sync()
    try await guest.download()
    try await owner.closeAccount()
  }

  /// Closes Alice's account on a device that dies after some transactions and is launched again. If it has died, the
  /// account is closed once more.
  ///
  /// - Returns: Whether the device has died.
  func close(dyingAfter commits: Int, _ network: TestDevice.Network) async throws -> Bool {
    alice.die(afterCommits: commits, network: network)
    do { try await alice.closeAccount() } catch { #expect(alice.isDead, "\(error)") }
    let isKilled = alice.isDead
    try await alice.relaunch()
    guard isKilled else { return false }
    // It may be closed already.
    do { try await alice.closeAccount() } catch let error as ServerError { #expect(error.code == .accountClosed) }
    return true
  }

  // MARK: Afterwards

  func expectClosed() async throws {
    try await expectThatNothingIsSent()
    try await expectThatTheGuestKeepsTheList()
    try await expectNoAccess()
    #expect(try people.world.server.commitCount() == commitCount)
    try await expectThatOthersGoOn()
  }

  private func expectThatNothingIsSent() async throws {
    let alice = alice
    for _ in 0..<2 {
      let error = await #expect(throws: ServerError.self) { try await alice.sync() }
      #expect(error?.code == .accountClosed)
    }
    let again = await #expect(throws: ServerError.self) { try await alice.closeAccount() }
    #expect(again?.code == .accountClosed)
    #expect(try await alice.api.zones(since: nil).chain?.seq == 1)
    #expect(try await alice.queueCount() == unsent)
  }

  private func expectThatTheGuestKeepsTheList() async throws {
    let bob = people.bob
    try await bob.edit("/list/note", "too late")
    _ = bob.recorder.take()
    try await bob.sync()
    #expect(Self.conflicts(bob) == ["conflict graft_DstUserAccountDeleted /list"])
    let waits = try await bob.write { _, cloud in cloud.explainQueue().map(\.reason) }
    #expect(waits == [.notAllowed])
    let phone = try await people.world.device("phone", account: "bob")
    try await people.world.settle(phone)
    #expect(try await phone.branch("/list") == "/note  \"1\"")
  }

  /// The conflicts that the app was notified of, in order.
  static func conflicts(_ device: TestDevice) -> [String] {
    device.recorder.take().filter { $0.hasPrefix("conflict") }
  }

  /// Expects that Carol, whom a queued change would have added, is no member of Alice's list.
  private func expectNoAccess() async throws {
    let (alice, carol) = (alice, people.carol)
    let root = try await alice.cloudID("/list")
    await #expect(throws: ServerError.self) { try await carol.accept(root, of: alice) }
    #expect(try await alice.members(people.bob, carol, of: "/list") == ["bob": "rw"])
    try FormerMemberCheck(people.world.server).run(try await carol.userKeys)
  }

  /// Expects that Carol has what Alice has sent, that Alice reads what Carol writes, and that Carol can remove her.
  private func expectThatOthersGoOn() async throws {
    let (alice, carol) = (alice, people.carol)
    try await people.world.settle(carol)
    #expect(try await carol.branch("/hers") == "/note  \"sent\"")
    try await carol.edit("/hers/note", "later")
    try await carol.sync()
    try await alice.pull()
    try await alice.download()
    #expect(try await alice.content(of: "/hers/note")?.data == Data("later".utf8))
    try await carol.unshare("/hers", with: alice)
    try await carol.edit("/hers/note", "without her")
    try await carol.sync()
    #expect(try await carol.queueCount() == 0)
    try await alice.pull()
    #expect(try await alice.branch("/hers") == nil)
    let opened = try FormerMemberCheck(people.world.server).run(try await alice.userKeys)
    #expect(opened > 0)
  }
}
