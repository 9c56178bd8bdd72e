import Foundation
import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZeroDarkCloud

/// Other users: fetched, verified, pinned, compared by people (PROTOCOL 3.2).
struct ContactTests {
  private struct Pair {
    let alice: TestDevice
    let bob: TestDevice
    let people: ZDCUserManager
    let bobID: String

    init(_ world: TestWorld) async throws {
      alice = try await world.device("A")
      bob = try await world.device("B", account: "bob")
      people = try #require(try alice.zdc.userManager)
      bobID = try bob.localUserID
    }

    var bobsUsers: ZDCLocalUserManager { get throws { try #require(try bob.zdc.localUserManager) } }

    @discardableResult
    func fetch() async throws -> ZDCIdentityState {
      try await people.fetchUser(id: bobID, for: alice.localUserID).identity
    }

    func newWords(_ world: TestWorld) async throws {
      world.setWords(try await bobsUsers.changeAccessWords(for: bobID), of: "bob")
    }

    func state() async throws -> ZDCIdentityState? {
      try await alice.database.read { [bobID] in $0.user(id: bobID)?.identity }
    }
  }

  @Test("a user is seen, verified, changed by new words and not by new keys, accepted, closed")
  func states() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      #expect(try await pair.state() == nil)
      #expect(try await pair.people.allUsers() == [])
      #expect(try await pair.fetch() == .seen)
      try await pair.newWords(world)
      #expect(try await pair.fetch() == .seen)
      #expect(try await pair.people.verify(pair.bobID).identity == .verified(link: 1))
      try await pair.bobsUsers.rotateKeys(for: pair.bobID, areCompromised: true)
      #expect(try await pair.fetch() == .verified(link: 1))
      try await pair.newWords(world)
      #expect(try await pair.state() == .verified(link: 1))
      #expect(try await pair.fetch() == .changed)
      #expect(try await pair.people.acceptIdentityChange(pair.bobID).identity == .seen)
      #expect(try await pair.people.verify(pair.bobID).identity == .verified(link: 3))
      #expect(try await pair.people.acceptIdentityChange(pair.bobID).identity == .verified(link: 3))
      try await pair.alice.relaunch()
      #expect(try await pair.state() == .verified(link: 3))
      try await pair.bob.sync()
      try await pair.bobsUsers.closeAccount(pair.bobID)
      let people = try #require(try pair.alice.zdc.userManager)
      #expect(try await people.fetchUser(id: pair.bobID, for: pair.alice.localUserID).identity == .closed)
      #expect(try await people.allUsers().map(\.uuid) == [pair.bobID])
    }
  }

  @Test func aBlockedUserStaysBlocked_untilUnblocked() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let unknown = await #expect(throws: ZDCError.self) { try await pair.people.block(pair.bobID) }
      #expect(unknown?.code == .userNotFound)
      try await pair.fetch()
      #expect(try await pair.people.block(pair.bobID).isBlocked)
      #expect(try await pair.people.verify(pair.bobID).isBlocked)
      try await pair.alice.relaunch()
      let people = try #require(try pair.alice.zdc.userManager)
      #expect(try await people.allUsers().map(\.isBlocked) == [true])
      let user = try await people.unblock(pair.bobID)
      #expect(!user.isBlocked && user.identity == .verified(link: 0))
    }
  }

  @Test("an observed state changes with a fetch, a decision and a block")
  func observation() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.fetch()
      let states = try pair.alice.database.values { [bobID = pair.bobID] in $0.user(id: bobID) }
      var iterator = states.makeAsyncIterator()
      let first: ZDCUser? = try await iterator.next() ?? nil
      #expect(first?.identity == .seen)
      try await pair.people.verify(pair.bobID)
      let second: ZDCUser? = try await iterator.next() ?? nil
      #expect(second?.identity == .verified(link: 0))
      try await pair.newWords(world)
      try await pair.fetch()
      let third: ZDCUser? = try await iterator.next() ?? nil
      #expect(third?.identity == .changed)
      try await pair.people.block(pair.bobID)
      let fourth: ZDCUser? = try await iterator.next() ?? nil
      #expect(fourth?.isBlocked == true)
    }
  }

  // MARK: Comparing

  @Test func bothSidesShowTheSameSafetyNumber_forLife() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let bobs = try #require(try pair.bob.zdc.userManager)
      let alice = try pair.alice.localUserID
      let number = try pair.people.safetyNumber(of: alice, and: pair.bobID)
      #expect(number.groups.count == 12)
      #expect(number.groups.allSatisfy { $0.count == 5 })
      #expect(try bobs.safetyNumber(of: pair.bobID, and: alice) == number)
      try await pair.newWords(world)
      #expect(try bobs.safetyNumber(of: pair.bobID, and: alice) == number)
      let carol = try await world.device("C", account: "carol")
      #expect(try pair.people.safetyNumber(of: alice, and: carol.localUserID) != number)
      #expect(throws: ZDCError.self) { try pair.people.safetyNumber(of: alice, and: "bob") }
    }
  }

  /// Computed by an independent program from PROTOCOL 3.2.
  @Test func theSafetyNumberIsTheOneOfTheProtocol() throws {
    let first = try #require(UserID([UInt8](repeating: 1, count: 32)))
    let second = try #require(UserID([UInt8](repeating: 2, count: 32)))
    let number = ZDCSafetyNumber(second, first)
    #expect(number.description == Self.expected)
  }

  private static let expected = "08149 86742 99755 98404 69720 38807 02342 60810 61564 32062 88504 52415"

  @Test func aScannedCodeVerifies_alsoBehindNewerLinks() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let bobs = try #require(try pair.bob.zdc.userManager)
      let code = try await bobs.identityCode(of: pair.bobID)
      #expect(code.hasPrefix("zdcid:1:"))
      let alice = try pair.alice.localUserID
      #expect(try await pair.people.verify(scanned: code, for: alice).identity == .verified(link: 0))
      try await pair.bobsUsers.rotateKeys(for: pair.bobID)
      #expect(try await pair.people.verify(scanned: code, of: pair.bobID, for: alice).identity == .verified(link: 1))
      let own = try await pair.people.identityCode(of: alice)
      let other = await #expect(throws: ZDCSecurityError.self) {
        try await pair.people.verify(scanned: own, of: pair.bobID, for: alice)
      }
      #expect(other?.code == .userIDMismatch)
      for text in ["", "zdcid:1:", code + "y", String(code.dropLast()), "zdcid:2:" + code.dropFirst(8)] {
        let error = await #expect(throws: ZDCError.self) { try await pair.people.verify(scanned: text, for: alice) }
        #expect(error?.code == .invalidParameter)
      }
    }
  }

  // MARK: Dishonest servers

  /// How a server answers the request for the links of other users.
  enum ChainLie: String, CaseIterable, Sendable {
    case nothing, alteredLink, otherUsersChain

    func body(honest: [UInt8], other: [UInt8]) -> [UInt8] {
      switch self {
      case .nothing: []
      case .alteredLink: honest.dropLast() + [honest[honest.count - 1] ^ 1]
      case .otherUsersChain: other
      }
    }

    var code: ZDCSecurityError.Code { self == .alteredLink ? .identityChainInvalid : .identityChainRollback }
  }

  /// - Alice has pinned Bob's first link. Bob gets new words and shows his code.
  /// => whatever the server answers, Bob is not verified, and the pinned chain stays
  @Test("a server that withholds, alters or exchanges links does not get a user verified", arguments: ChainLie.allCases)
  func dishonestChains(_ lie: ChainLie) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let alice = try await TestDevice("alice", server: world.server, clock: world.clock, through: hostile)
      try await alice.createAccount()
      let pair = try await Pair(world)
      let people = try #require(try alice.zdc.userManager)
      let own = try alice.localUserID
      try await people.fetchUser(id: pair.bobID, for: own)
      try await pair.newWords(world)
      let bobs = try #require(try pair.bob.zdc.userManager)
      let code = try await bobs.identityCode(of: pair.bobID)
      let otherID = try #require(UserID(text: try pair.alice.localUserID))
      let other = try await pair.alice.api.chain(of: otherID)
      hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.chains else { return false }
          answer.body = lie.body(honest: answer.body, other: other)
          return true
        })
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await people.verify(scanned: code, of: pair.bobID, for: own)
      }
      #expect(error?.code == lie.code)
      #expect(hostile.liesTold > 0)
      let kept = try await alice.database.read { [bobID = pair.bobID] in $0.user(id: bobID)?.identity }
      #expect(kept == .seen)
      hostile.stopTampering()
      #expect(try await people.verify(scanned: code, of: pair.bobID, for: own).identity == .verified(link: 1))
      try await alice.close()
    }
  }

  @Test func anUnknownUserIsNotFound() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let stranger = try NewAccount(accessKey: .random(), appTreeID: TestDevice.treeID, timeMs: 1)
      for id in [stranger.userID.text, "nobody"] {
        let error = await #expect(throws: ZDCError.self) {
          try await pair.people.fetchUser(id: id, for: pair.alice.localUserID)
        }
        #expect(error?.code == .userNotFound)
      }
    }
  }
}
