import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Who gets the key of a shared tree.
struct RecipientTests {
  typealias People = ListChangeTests.People

  /// Alice's tree and a queued change of its list, after which Carol is a member.
  private static func changing(_ world: TestWorld, isRemoval: Bool) async throws -> People {
    let people = try await People(world)
    let (alice, bob, carol) = (people.alice, people.bob, people.carol)
    if isRemoval {
      for member in [bob, carol] { try await alice.share(with: member) }
      try await alice.sync()
      try await carol.accept(alice)
      try await alice.unshare(with: bob)
    } else {
      try await alice.share(with: carol)
    }
    return people
  }

  /// - Carol, a new member or one who stays while Bob is removed, replaces her keys while the list is on its way
  /// => the list is made again at once for her new keys, and she reads what is written next
  @Test("K-9: a member replaces their keys while the list is on its way", arguments: [false, true])
  func aMemberRotatesWhileTheListIsOnItsWay(isRemoval: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.changing(world, isRemoval: isRemoval)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let rotation: @Sendable () async throws -> Void = {
        let users = try #require(try carol.zdc.localUserManager)
        try await users.rotateKeys(for: carol.localUserID)
      }
      alice.network.fail(.before(rotation), "POST", Routes.commits)
      let before = try world.server.commitCount()
      try await alice.sync()
      #expect(alice.network.hasStruck)
      #expect(try world.server.commitCount() == before + 1)
      #expect(try await alice.queueCount() == 0)
      let list = try await people.home().acl.fields
      #expect(list.entry(for: try carol.userID)?.encGen == 2)
      #expect(list.entry(for: try bob.userID) == nil)
      #expect(list.zoneKeyGen == (isRemoval ? 2 : 1))
      try await alice.create("/next", "for the new keys")
      try await alice.sync()
      if !isRemoval { try await carol.accept(alice) }
      try await world.settle(carol, alice)
      #expect(try await carol.tree(of: alice) == "/next  \"for the new keys\"")
    }
  }

  /// - Alice has verified Carol and shares with her; Carol changes her words and keys while the list is on its way
  /// => Carol gets no access until Alice has accepted the change
  @Test("K-10: a new member with new words and keys is not added by the list that is made again")
  func newWordsWhileTheListIsOnItsWay() async throws {
    try await TestWorld.run { world in
      let people = try await Self.changing(world, isRemoval: false)
      let (alice, carol) = (people.alice, people.carol)
      let contacts = try #require(try alice.zdc.userManager)
      let user = try carol.localUserID
      try await contacts.verify(user)
      let change: @Sendable () async throws -> Void = {
        let users = try #require(try carol.zdc.localUserManager)
        world.setWords(try await users.changeAccessWords(for: user), of: "carol")
        try await users.rotateKeys(for: user)
      }
      alice.network.fail(.before(change), "POST", Routes.commits)
      try await alice.sync()
      #expect(alice.network.hasStruck)
      #expect(try await people.home().acl.fields.entries.count == 1)
      let waiting = try await alice.write { _, cloud in cloud.explainQueue() }
      #expect(waiting.map { "\($0.kind) \($0.detail ?? "")" } == ["changeList identityChangedNeedsAcceptance"])
      try await contacts.acceptIdentityChange(user)
      world.clock.advance(by: .seconds(600))
      try await alice.sync()
      #expect(try await people.home().acl.fields.entry(for: try carol.userID)?.encGen == 2)
      #expect(try await alice.queueCount() == 0)
    }
  }

  /// Alice sends her list. The member changes words and keys before that, or while the list is on its way.
  private static func sendList(_ people: People, isOnItsWay: Bool, changing member: TestDevice) async throws {
    let world = people.world
    let change: @Sendable () async throws -> Void = {
      let users = try #require(try member.zdc.localUserManager)
      let user = try member.localUserID
      world.setWords(try await users.changeAccessWords(for: user), of: member.name)
      try await users.rotateKeys(for: user)
    }
    if isOnItsWay {
      people.alice.network.fail(.before(change), "POST", Routes.commits)
    } else {
      try await change()
    }
    try await people.alice.sync()
    #expect(people.alice.network.hasStruck)
  }

  /// - Alice has verified Carol, who stays while Bob is removed; Carol changes her words and keys before the list is
  ///   sent, or while it is on its way
  /// => Bob is removed at once; Carol, for whom the old root vouches, gets the new key under her new keys, and reads
  ///   what is written next, before and after Alice accepts the change
  @Test("K-10: a member who stays, with new words and keys, does not delay a removal", arguments: [false, true])
  func newWordsOfAMemberWhoStays(isOnItsWay: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await Self.changing(world, isRemoval: true)
      let (alice, carol) = (people.alice, people.carol)
      let contacts = try #require(try alice.zdc.userManager)
      let user = try carol.localUserID
      try await contacts.verify(user)
      let before = try world.server.commitCount()
      try await Self.sendList(people, isOnItsWay: isOnItsWay, changing: carol)
      #expect(try world.server.commitCount() == before + 1)
      #expect(try await alice.queueCount() == 0)
      let list = try await people.home().acl.fields
      #expect(list.zoneKeyGen == 2)
      #expect(try Set(list.entries.map(\.user)) == [alice.userID, carol.userID])
      #expect(list.entry(for: try carol.userID)?.encGen == 2)
      let identity = try await alice.database.read { $0.user(id: user)?.identity }
      #expect(identity == .changed)
      try await alice.create("/first", "not accepted yet")
      try await world.settle(alice, carol)
      #expect(try await carol.tree(of: alice) == "/first  \"not accepted yet\"")
      try await contacts.acceptIdentityChange(user)
      try await alice.create("/second", "accepted")
      try await world.settle(alice, carol)
      #expect(try await carol.tree(of: alice) == "/first  \"not accepted yet\"\n/second  \"accepted\"")
      #expect(try await people.home().acl.fields == list)
    }
  }

  /// - Alice removes Bob and adds Carol, whom she has verified; Carol changes her words and keys before the list is
  ///   sent, or while it is on its way
  /// => Bob is removed at once, and Alice alone gets the new key; Carol gets it, and reads the tree, once Alice has
  ///   accepted the change
  @Test("K-10: a new member with new words and keys does not delay a removal", arguments: [false, true])
  func newWordsOfANewMember(isOnItsWay: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.create("/note", "for members")
      try await alice.share(with: bob)
      try await alice.sync()
      let contacts = try #require(try alice.zdc.userManager)
      let user = try carol.localUserID
      try await contacts.verify(user)
      try await alice.unshare(with: bob)
      try await alice.share(with: carol)
      let before = try world.server.commitCount()
      try await Self.sendList(people, isOnItsWay: isOnItsWay, changing: carol)
      #expect(try world.server.commitCount() == before + 1)
      let list = try await people.home().acl.fields
      #expect(try list.entries.map(\.user) == [alice.userID])
      #expect(list.zoneKeyGen == 2)
      let waiting = try await alice.write { _, cloud in cloud.explainQueue() }
      #expect(waiting.map { "\($0.kind) \($0.detail ?? "")" } == ["changeList identityChangedNeedsAcceptance"])
      await #expect(throws: (any Error).self) { try await carol.accept(alice) }
      try await contacts.acceptIdentityChange(user)
      world.clock.advance(by: .seconds(600))
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await people.home().acl.fields.entry(for: try carol.userID)?.encGen == 2)
      #expect(try await people.home().acl.fields.zoneKeyGen == 2)
      try await carol.accept(alice)
      try await carol.download()
      #expect(try await carol.tree(of: alice) == "/note  \"for members\"")
    }
  }

  /// - the server refuses a new access list as often as it likes, and names another user whose key is stale
  /// => the list has those members that the owner added, and no key is sealed to anyone else
  @Test func aUserWhomOnlyTheServerNames_getsNoKey() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let alice = try await TestDevice("alice", server: world.server, clock: world.clock, through: hostile)
      _ = try await alice.createAccount()
      let (bob, eve) = (try await world.device("bob", account: "bob"), try await world.device("eve", account: "eve"))
      try await alice.create("/list", "milk")
      try await alice.sync()
      try await alice.meet(bob)
      let refusal =
        #"{"code":"recipientKeyStale","message":"by script","retryable":false,"user":"\#(try eve.localUserID)"}"#
      hostile.tell(.fabricate("POST", Routes.commits, status: 422, json: refusal), times: 2)
      try await alice.share(with: bob)
      for _ in 0..<4 {
        _ = try? await alice.sync()
        world.clock.advance(by: .seconds(3_600))
      }
      #expect(hostile.liesTold == 2)
      #expect(try await alice.members(bob, eve) == ["bob": "rw"])
      let allowed = Set([try alice.userID, try bob.userID])
      #expect(try Self.recipients(hostile.requests).subtracting(allowed).isEmpty)
      #expect(try Self.recipients(hostile.requests).contains(try bob.userID))
      try await bob.accept(alice)
      try await bob.download()
      #expect(try await bob.tree(of: alice) == "/list  \"milk\"")
      await #expect(throws: (any Error).self) { try await eve.accept(alice) }
      try await alice.close()
    }
  }

  /// The users for whom one of the requests has a grant, or whom one of their access lists names.
  static func recipients(_ requests: [HostileServer.HeardRequest]) throws -> Set<UserID> {
    var found: Set<UserID> = []
    for request in requests where request.route.pattern == Routes.commits && request.route.method == "POST" {
      var reader = ZDCProtocol.Bundle.Reader(request.body)
      while let item = try reader.next() {
        if case .grant(let grant) = item { found.insert(grant.user) }
        if case .acl(let list) = item { found.formUnion(list.fields.entries.map(\.user)) }
      }
    }
    return found
  }
}
