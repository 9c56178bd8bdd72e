import Testing
import ZDCAccounts
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Lists of branches with users who close their accounts.
struct ClosedMemberTests {
  typealias People = ListChangeTests.People

  /// Alice's list with a part, of which Bob is a member.
  private static func people(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    let alice = people.alice
    for path in ["/list", "/list/part", "/list/part/note"] { try await alice.create(path, "1") }
    try await alice.sync()
    try await alice.share("/list", with: people.bob)
    try await alice.sync()
    return people
  }

  /// - Alice adds Carol to the list, from which she also removes Bob, or shares a part of it with her
  /// - Carol closes her account while that is on its way
  /// => it is made again without Carol at once; Bob is removed, and what is queued after it is sent
  @Test(arguments: [false, true]) func aNewMemberClosesTheAccount(isSplit: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.people(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let path = isSplit ? "/list/part" : "/list"
      if !isSplit { try await alice.unshare(path, with: bob) }
      try await alice.share(path, with: carol)
      try await alice.edit("/list/part/note", "2")
      alice.network.fail(.before { try await carol.closeAccount() }, "POST", Routes.commits)
      try await alice.sync()
      #expect(alice.network.hasStruck)
      #expect(try await alice.members(bob, carol, of: path) == (isSplit ? ["bob": "rw"] : [:]))
      let waiting = try await alice.write { _, cloud in cloud.explainQueue().map(\.kind) }
      #expect(waiting == ["changeList"])
      try FormerMemberCheck(world.server).run(try await carol.userKeys)
      let opened = try FormerMemberCheck(world.server).run(try await bob.userKeys)
      #expect(opened > 0)
      // The app gives up.
      try await alice.unshare(path, with: carol)
      #expect(try await alice.queueCount() == 0)
    }
  }

  /// - the server refuses a list with a removal and an addition, says that the new member has closed the account, and
  ///   shows no such link
  /// => the removal is sent without the addition, which is sent later
  @Test func aServerThatOnlyClaimsIt_delaysTheAdditionAlone() async throws {
    try await TestWorld.run { world in
      let people = try await Self.people(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let lie = ServerError(.accountClosed, "by script").with(user: try carol.userID)
      alice.network.fail(.before { throw lie }, "POST", Routes.commits)
      try await alice.unshare("/list", with: bob)
      try await alice.share("/list", with: carol)
      try await alice.edit("/list/part/note", "2")
      try await alice.sync()
      #expect(try await alice.members(bob, carol, of: "/list") == [:])
      #expect(try await alice.queueCount() == 1)
      world.clock.advance(by: .seconds(600))
      try await alice.sync()
      #expect(try await alice.members(bob, carol, of: "/list") == ["carol": "rw"])
    }
  }

  /// - Carol, a member of Alice's list, closes her account; Alice shares a part separately, in which Bob may only read
  /// => Carol, who may read for 30 days, reads the part as before; after a removal she reads nothing new
  @Test func aPartOfABranchWithAClosedMember_isSharedSeparately() async throws {
    try await TestWorld.run { world in
      let people = try await Self.people(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.share("/list", with: carol)
      try await alice.sync()
      try await carol.graft("/list", try await alice.invite("/list"), from: alice)
      try await world.settle(carol)
      try await carol.closeAccount()
      try await alice.share("/list/part", with: bob, "r")
      try await alice.edit("/list/part/note", "2")
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await alice.members(bob, carol, of: "/list/part") == ["bob": "r", "carol": "rw"])
      try await world.settle(carol)
      #expect(try await carol.branch("/list") == "/part  \"1\"\n/part/note  \"2\"")
      // Carol's device cannot send the end of the graft.
      world.mayWait(carol)
      try await alice.unshare("/list", with: carol)
      try await alice.edit("/list/part/note", "3")
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      try await carol.pull()
      #expect(try await carol.branch("/list") == nil)
      let opened = try FormerMemberCheck(world.server).run(try await carol.userKeys)
      #expect(opened > 0)
    }
  }
}

extension TestDevice {
  /// Closes the account of the device's user.
  func closeAccount() async throws {
    guard let users = try zdc.localUserManager else { throw TestFailure("\(name)'s database is locked") }
    try await users.closeAccount(try localUserID)
  }
}
