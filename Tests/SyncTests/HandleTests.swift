import Foundation
import Testing
import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZeroDarkCloud

/// Handles: chosen, found, and checked against the users' own chains (PROTOCOL 3.2).
struct HandleTests {
  /// Alice looks up; Bob and Mallory have accounts.
  private struct People {
    let alice: TestDevice
    let bob: TestDevice
    let mallory: TestDevice
    let hostile: HostileServer
    let people: ZDCUserManager
    let own: String

    static func run(_ body: @escaping @Sendable (People, TestWorld) async throws -> Void) async throws {
      try await TestWorld.run { world in
        let hostile = HostileServer(world.server)
        let alice = try await TestDevice("alice", server: world.server, clock: world.clock, through: hostile)
        try await alice.createAccount()
        let people = People(
          alice: alice, bob: try await world.device("B", account: "bob"),
          mallory: try await world.device("M", account: "mallory"), hostile: hostile,
          people: try #require(try alice.zdc.userManager), own: try alice.localUserID)
        try await body(people, world)
        try await alice.close()
      }
    }

    static func claim(_ handle: String?, _ device: TestDevice) async throws {
      try await #require(try device.zdc.localUserManager).setHandle(handle, for: device.localUserID)
    }

    func code(_ handle: String) async -> ZDCSecurityError.Code? {
      let error = await #expect(throws: ZDCSecurityError.self) { try await people.fetchUser(handle: handle, for: own) }
      return error?.code
    }

    /// The server says that this device's user has the handle.
    func name(_ device: TestDevice, as handle: String) throws {
      let entry = HandleList.Entry(
        handle: try #require(Handle(handle)), user: try #require(UserID(text: try device.localUserID)))
      hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.handles else { return false }
          answer.body = HandleList.bytes([entry])
          return true
        })
    }

    /// Expects that the app cannot share with this device's user, and that what it sends next names no other user.
    func expectNoShare(with device: TestDevice) async throws {
      try await alice.sync()
      hostile.forgetRequests()
      let error = await #expect(throws: ZDCCloudError.self) { try await alice.share(with: device) }
      #expect(error?.code == .unknownUser)
      #expect(try await alice.queueCount() == 0)
      try await alice.create("/without-\(device.name)", "not shared")
      try await alice.sync()
      #expect(hostile.requests.contains { $0.route.method == "POST" && $0.route.pattern == Routes.commits })
      #expect(try RecipientTests.recipients(hostile.requests) == [])
    }
  }

  @Test("a user is found by handle, and by its beginning; a search stores no strangers")
  func lookUp() async throws {
    try await People.run { people, _ in
      let (alice, bobID) = (people.alice, try people.bob.localUserID)
      try await People.claim("@Bob", people.bob)
      try await People.claim("bobby", people.mallory)
      let found = try await people.people.findUsers(handle: "BOB", for: people.own)
      #expect(found.map(\.handle) == ["bob", "bobby"])
      #expect(found.map(\.uuid) == [bobID, try people.mallory.localUserID])
      #expect(try await people.people.allUsers() == [])
      let bob = try await people.people.fetchUser(handle: "@bob", for: people.own)
      #expect((bob.uuid, bob.handle, bob.displayName, bob.identity) == (bobID, "bob", "@bob", .seen))
      #expect(try await people.people.allUsers() == [bob])
      #expect(try await people.people.findUsers(handle: "zoe", for: people.own) == [])
      let unknown = await #expect(throws: ZDCError.self) {
        try await people.people.fetchUser(handle: "bo.b", for: people.own)
      }
      #expect(unknown?.code == .userNotFound)
      try await People.claim("alice", alice)
      let own = try await alice.database.read { [own = people.own] in $0.user(id: own)?.handle }
      #expect(own == "alice")
      #expect(try await people.people.fetchUser(handle: "alice", for: people.own).isLocal)
    }
  }

  @Test("a text that is no handle, and one that another user has, change nothing")
  func refusals() async throws {
    try await People.run { people, _ in
      for text in ["ab", "b..b", "1bob", "böb", ""] {
        let error = await #expect(throws: ZDCError.self) { try await People.claim(text, people.bob) }
        #expect(error?.code == .invalidParameter)
        let search = await #expect(throws: ZDCError.self) {
          try await people.people.fetchUser(handle: text, for: people.own)
        }
        #expect(search?.code == .invalidParameter)
      }
      try await People.claim("bob", people.bob)
      let taken = await #expect(throws: ZDCServerError.self) { try await People.claim("bob", people.mallory) }
      #expect(taken?.code == .handleTaken)
      // The refused claim does not stand before other changes of the identity.
      let rotation = try await #require(try people.mallory.zdc.localUserManager)
        .rotateKeys(for: people.mallory.localUserID)
      #expect(rotation.generation == 2)
      try await People.claim("mallory", people.mallory)
      #expect(try await people.people.fetchUser(handle: "mallory", for: people.own).uuid == people.mallory.localUserID)
    }
  }

  @Test("a handle that was given up leads to no user; another device sees the account's handle")
  func givenUp() async throws {
    try await People.run { people, world in
      try await People.claim("bob", people.bob)
      let second = try await world.device("B2", account: "bob")
      try await second.sync()
      let id = try people.bob.localUserID
      let seen = try await second.database.read { $0.user(id: id)?.handle }
      #expect(seen == "bob")
      try await people.people.fetchUser(handle: "bob", for: people.own)
      try await People.claim(nil, people.bob)
      #expect(try await people.people.fetchUser(id: id, for: people.own).handle == nil)
      let error = await #expect(throws: ZDCError.self) {
        try await people.people.fetchUser(handle: "bob", for: people.own)
      }
      #expect(error?.code == .userNotFound)
    }
  }

  /// - Bob gives "bob" up, and Mallory takes it after 30 days. Alice knows Bob's old chain only
  /// => Alice finds Mallory, because Bob's chain says that the handle is free
  @Test("the handle of a known user who gave it up is another's")
  func handedOn() async throws {
    try await People.run { people, world in
      try await People.claim("bob", people.bob)
      try await people.people.fetchUser(handle: "bob", for: people.own)
      try await People.claim(nil, people.bob)
      world.clock.advance(by: .seconds(30 * 86_400 + 1))
      try await People.claim("bob", people.mallory)
      #expect(try await people.people.fetchUser(handle: "bob", for: people.own).uuid == people.mallory.localUserID)
    }
  }

  // MARK: SECURITY A2

  /// - the server names Mallory, who has not claimed "bob", to Alice, who knows neither of them
  /// => the error, nothing is pinned, and Alice's device sends no list and no grant for either
  @Test("A2: the server names a user whose chain does not claim the handle")
  func aUserWithoutTheClaim() async throws {
    try await People.run { people, _ in
      try await People.claim("bob", people.bob)
      try people.name(people.mallory, as: "bob")
      #expect(await people.code("bob") == .handleBindingChanged)
      let search = await #expect(throws: ZDCSecurityError.self) {
        try await people.people.findUsers(handle: "bob", for: people.own)
      }
      #expect(search?.code == .handleBindingChanged)
      #expect(try await people.people.allUsers() == [])
      for device in [people.mallory, people.bob] { try await people.expectNoShare(with: device) }
    }
  }

  /// - Mallory claims "bob" at a server that accepts it twice; Alice has verified Bob
  /// => nothing is shared with Mallory as "bob": Alice's list and its grants name the user whom she has verified
  @Test("A2: the server names a colluding user in the place of a known one")
  func aColludingUser() async throws {
    try await People.run { people, _ in
      try await People.claim("bob", people.bob)
      try await people.people.fetchUser(handle: "bob", for: people.own)
      try await people.people.verify(try people.bob.localUserID)
      try await People.claim("bobby", people.mallory)
      let forged = try await people.mallory.linkClaiming("bob")
      let mallory = try #require(UserID(text: try people.mallory.localUserID))
      try people.name(people.mallory, as: "bob")
      people.hostile.tell(
        .rewrite(.link) { items in
          if items.contains(where: { $0.link?.userID == mallory }) { items.append(ServedItem(forged)) }
        })
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await people.people.fetchUser(handle: "bob", for: people.own)
      }
      #expect(error?.code == .handleBindingChanged)
      #expect(try error?.user?.text == people.bob.localUserID)
      #expect(try await people.people.allUsers().map(\.uuid) == [people.bob.localUserID])
      try await people.expectNoShare(with: people.mallory)
      try await people.alice.share(with: people.bob)
      try await people.alice.sync()
      let recipients = try RecipientTests.recipients(people.hostile.requests)
      #expect(recipients == Set([try people.alice.userID, try people.bob.userID]))
      people.hostile.stopTampering()
      #expect(try await people.people.fetchUser(handle: "bob", for: people.own).uuid == people.bob.localUserID)
    }
  }

  @Test("a claim whose answer is lost is made once", arguments: [true, false])
  func lostAnswers(isExecuted: Bool) async throws {
    try await TestWorld.run { world in
      let fault = isExecuted ? Fault.loseResponse : .loseRequest
      let bob = try await world.device("B", account: "bob")
      bob.network.fail(fault, "POST", Routes.links, times: 20)
      await #expect(throws: (any Error).self) { try await People.claim("bob", bob) }
      bob.network.restoreNetwork()
      try await bob.relaunch()
      try await People.claim("bob", bob)
      let id = try #require(UserID(text: try bob.localUserID))
      let links = try IdentityChain.links(try await bob.api.chain(of: id), of: id)
      #expect(links.map(\.kind) == [.genesis, .claims])
      #expect(links.handle?.text == "bob")
    }
  }
}
