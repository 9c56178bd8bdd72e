import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A member whose grant does not hold the zone's key asks other members for it (PROTOCOL 3.11, "Keys of zones").
struct KeyRequestTests {
  typealias People = ListChangeTests.People

  /// Alice's tree with Bob and Carol. Then the tree gets a new key, and Carol a grant that holds another one.
  private struct Locked {
    let people: People
    let zone: ZoneID
    let key: NodeKey
    var alice: TestDevice { people.alice }
    var bob: TestDevice { people.bob }
    var carol: TestDevice { people.carol }

    init(_ world: TestWorld) async throws {
      people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await alice.create("/list")
      try await alice.create("/list/milk", "1 l")
      for member in [bob, carol] { try await alice.share(with: member) }
      try await alice.sync()
      for member in [bob, carol] { try await member.accept(alice) }
      let rogue = try await people.rogue("alice", alice)
      let home = try await rogue.home()
      let members = [
        ZoneRotation.Member(user: try bob.userID, encPub: try await people.rogue("bob", bob).encPub()),
        ZoneRotation.Member(
          user: try carol.userID, encPub: try await people.rogue("carol", carol).encPub(), granted: .random()),
      ]
      let rotation = try home.rotation(encPub: try await rogue.encPub(), members: members)
      try await rogue.push(rotation)
      (zone, key) = (home.zone, rotation.key)
      world.expectsSecurityErrors(["keyCommitmentMismatch"], on: carol)
      try await bob.sync()
      try await bob.create(bob.path("/list/bread", of: alice), "two")
      try await bob.sync()
    }

    func letter(key: NodeKey? = nil, gen: UInt32 = 2) -> ZoneKeyLetter {
      ZoneKeyLetter(zone: zone, zoneKeyGen: gen, key: key)
    }

    /// What Carol reads of Bob's new node; nil if it does not open.
    func carolsBread() async throws -> Data? {
      let path = try carol.path("/list/bread", of: alice)
      guard try await carol.tree(of: alice)?.contains("bread") == true else { return nil }
      try await carol.download()
      return try await carol.content(of: path)?.data
    }

    /// Sends a letter about a key from one user to another, whatever the rules say.
    static func send(_ letter: ZoneKeyLetter, from sender: TestDevice, to recipient: TestDevice) async throws {
      let session = try await sender.syncManager.engine(for: try sender.localUserID).session
      try await ZoneKeyRequests(session: session).send([(letter, try recipient.userID)])
    }
  }

  private static func sent(_ device: TestDevice) -> Int { device.network.count("POST", Routes.messages) }

  @Test("K-2: a member with a grant of another key gets the key from another member")
  func aGrantOfAnotherKey() async throws {
    try await TestWorld.run { world in
      let locked = try await Locked(world)
      let (bob, carol) = (locked.bob, locked.carol)
      try await carol.sync()
      #expect(try await locked.carolsBread() == nil)
      try await carol.create(carol.path("/list/eggs", of: locked.alice), "six")
      try await carol.sync()
      #expect(try await carol.queueCount() > 0)
      // Alice, whose grant is right too, is away.
      try await bob.sync()
      try await carol.sync()
      #expect(try await locked.carolsBread() == Data("two".utf8))
      try await world.settle(locked.alice, bob, carol)
      let tree = try await locked.alice.tree(versions: false)
      #expect(tree.contains("eggs") && tree.contains("bread"))
      for member in [bob, carol] { #expect(try await member.tree(of: locked.alice) == tree) }
      #expect(try await carol.queueCount() == 0)
      // The letters are in no inbox, and in no mailbox any more.
      for device in [locked.alice, bob, carol] {
        #expect(!device.recorder.lines.contains { $0.contains("inbox") })
        let inbox = TreeID.derive(owner: try device.userID, trunk: .inbox, appTreeID: TestDevice.treeID)
        #expect(try await device.api.waitingMessages(in: inbox, after: 0).messages.isEmpty)
      }
    }
  }

  @Test("K-2: the key is asked for with pauses that grow, and not again once it is there")
  func pauses() async throws {
    try await TestWorld.run { world in
      let locked = try await Locked(world)
      let carol = locked.carol
      var asked: [Int] = []
      carol.network.resetCounts()
      for pause in [0, 60, 600, 600, 600] {
        world.clock.advance(by: .seconds(pause))
        try await carol.sync()
        asked.append(Self.sent(carol))
      }
      #expect(asked == [1, 1, 2, 2, 3])
      try await locked.bob.sync()
      try await carol.sync()
      #expect(try await locked.carolsBread() == Data("two".utf8))
      world.clock.advance(by: .seconds(86_400))
      try await carol.sync()
      #expect(Self.sent(carol) == 3)
    }
  }

  @Test("K-2: an answer that the server refuses delays nothing, and the next request is answered")
  func aRefusedAnswer() async throws {
    try await TestWorld.run { world in
      let locked = try await Locked(world)
      let (bob, carol) = (locked.bob, locked.carol)
      try await carol.sync()
      bob.network.fail(.answer(status: 429, code: "tooManyRequests"), "POST", Routes.messages, times: 1)
      try await bob.sync()
      #expect(bob.network.hasStruck)
      try await carol.sync()
      #expect(try await locked.carolsBread() == nil)
      world.clock.advance(by: .seconds(600))
      try await carol.sync()
      try await bob.sync()
      try await carol.sync()
      #expect(try await locked.carolsBread() == Data("two".utf8))
    }
  }

  /// A request of a user without access, for an earlier key, of a member with new words
  @Test("K-2: only members whom the list in force names get the key, and only the key in force")
  func noAnswer() async throws {
    try await TestWorld.run { world in
      let locked = try await Locked(world)
      let (bob, carol) = (locked.bob, locked.carol)
      let dave = try await world.device("dave", account: "dave")
      try await dave.sync()
      try await bob.syncManager.acceptMessages(fromUserID: dave.localUserID, forLocalUserID: bob.localUserID)
      try await Locked.send(locked.letter(), from: dave, to: bob)
      try await Locked.send(locked.letter(gen: 1), from: carol, to: bob)
      bob.network.resetCounts()
      try await bob.sync()
      #expect(Self.sent(bob) == 0)
      let people = try #require(try bob.zdc.userManager)
      try await people.fetchUser(id: carol.localUserID, for: bob.localUserID)
      try await people.verify(carol.localUserID)
      let words = try await #require(try carol.zdc.localUserManager).changeAccessWords(for: carol.localUserID)
      world.setWords(words, of: "carol")
      try await people.fetchUser(id: carol.localUserID, for: bob.localUserID)
      try await Locked.send(locked.letter(), from: carol, to: bob)
      try await bob.sync()
      #expect(Self.sent(bob) == 0)
      try await people.acceptIdentityChange(carol.localUserID)
      try await Locked.send(locked.letter(), from: carol, to: bob)
      try await bob.sync()
      #expect(Self.sent(bob) == 1)
      try await carol.sync()
      #expect(try await locked.carolsBread() == Data("two".utf8))
    }
  }

  @Test("K-2: an answer with another key is reported with its sender, and the right one is taken afterwards")
  func anAnswerWithAnotherKey() async throws {
    try await TestWorld.run { world in
      let locked = try await Locked(world)
      let (bob, carol) = (locked.bob, locked.carol)
      world.expectsSecurityErrors(["keyCommitmentMismatch", "keyCommitmentMismatch"], on: carol)
      try await Locked.send(locked.letter(key: .random()), from: bob, to: carol)
      try await carol.sync()
      #expect(try await locked.carolsBread() == nil)
      let events = try await carol.syncManager.securityEvents(localUserID: carol.localUserID)
      let sender = try bob.localUserID
      #expect(events.contains { $0.error.code == .keyCommitmentMismatch && $0.error.user?.text == sender })
      try await Locked.send(locked.letter(key: locked.key), from: bob, to: carol)
      try await carol.sync()
      #expect(try await locked.carolsBread() == Data("two".utf8))
    }
  }

  @Test("K-3: a server that withholds a grant does not keep the key from a member")
  func aWithheldGrant() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let people = try await People(world)
      let carol = try await TestDevice("C", server: world.server, clock: world.clock, through: hostile)
      try await carol.createAccount()
      try await people.alice.meet(carol)
      for member in [people.bob, carol] { try await people.alice.share(with: member) }
      try await people.alice.sync()
      for member in [people.bob, carol] { try await member.accept(people.alice) }
      hostile.tell(.withhold(.grant) { $0.grant?.zoneKeyGen == 2 })
      try await people.alice.unshare(with: people.bob)
      try await people.alice.create("/after", "new key")
      try await people.alice.sync()
      try await carol.sync()
      let path = try carol.path("/after", of: people.alice)
      #expect(try await carol.tree(of: people.alice)?.contains("after") == false)
      try await people.alice.sync()
      try await carol.sync()
      try await carol.download()
      #expect(try await carol.content(of: path)?.data == Data("new key".utf8))
      #expect(hostile.liesTold > 0)
      try await carol.close()
    }
  }

  // MARK: The owner

  /// Alice's tree, to which Bob gives a new key as a member who may change the list. Alice's grant holds another key
  /// than his and Carol's. Carol writes under the new key.
  private static func lockedOwner(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    let (alice, bob, carol) = (people.alice, people.bob, people.carol)
    try await alice.create("/list")
    try await alice.create("/list/milk", "1 l")
    try await alice.share(with: bob, "rws")
    try await alice.share(with: carol)
    try await alice.sync()
    for member in [bob, carol] { try await member.accept(alice) }
    let (owner, writer) = (try await people.rogue("alice", alice), try await people.rogue("bob", bob))
    let members = [
      ZoneRotation.Member(user: try bob.userID, encPub: try await writer.encPub()),
      ZoneRotation.Member(user: try carol.userID, encPub: try await people.rogue("carol", carol).encPub()),
    ]
    let home = try await owner.home()
    try await writer.push(
      try home.rotation(
        encPub: try await owner.encPub(), granting: .random(), members: members, by: writer.keys))
    try await carol.sync()
    try await carol.create(carol.path("/list/bread", of: alice), "two")
    try await carol.sync()
    return people
  }

  @Test("K-1, K-2: an owner whom a member locks out gets the key from another member, and removes the first one")
  func aLockedOutOwner() async throws {
    try await TestWorld.run { world in
      // A fresh device of the owner meets the wrong grant in the log as well.
      world.skipsComparison()
      let people = try await Self.lockedOwner(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      world.expectsSecurityErrors(["keyCommitmentMismatch"], on: alice)
      try await alice.sync()
      #expect(try await !alice.tree().contains("bread"))
      let events = try await alice.syncManager.securityEvents(localUserID: alice.localUserID)
      let writer = try bob.userID
      #expect(events.first?.error.user == writer)
      try await alice.create("/list/eggs", "six")
      try await alice.sync()
      #expect(try await alice.queueCount() > 0)
      // Bob, whose key is right too, does not answer.
      try await carol.sync()
      try await alice.sync()
      try await alice.download()
      #expect(try await alice.content(of: "/list/bread")?.data == Data("two".utf8))
      try await alice.unshare(with: bob)
      try await world.settle(alice, carol)
      #expect(try await alice.members(bob, carol) == ["carol": "rw"])
      #expect(try await people.home().acl.fields.zoneKeyGen == 3)
      #expect(try await alice.queueCount() == 0)
      let fresh = try await world.device("fresh")
      world.expectsSecurityErrors(["keyCommitmentMismatch"], on: fresh)
      try await world.settle(fresh)
      let tree = try await alice.tree(versions: false)
      #expect(tree == "/list\n/list/bread  \"two\"\n/list/eggs  \"six\"\n/list/milk  \"1 l\"")
      #expect(try await carol.tree(of: alice) == tree)
      #expect(try await fresh.tree(versions: false) == tree)
    }
  }
}
