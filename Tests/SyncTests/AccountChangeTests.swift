import Foundation
import Testing
import ZDCAccounts
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Changes of the account's own identity: keys, words, closing (PROTOCOL 3.4).
struct AccountChangeTests {
  private static func users(_ device: TestDevice) throws -> ZDCLocalUserManager {
    try #require(try device.zdc.localUserManager)
  }

  enum Change: String, CaseIterable, Sendable {
    case keys, compromisedKeys, words

    func run(on device: TestDevice) async throws {
      let (users, user) = (try AccountChangeTests.users(device), try device.localUserID)
      switch self {
      case .keys: try await users.rotateKeys(for: user)
      case .compromisedKeys: try await users.rotateKeys(for: user, areCompromised: true)
      case .words: _ = try await users.changeAccessWords(for: user)
      }
    }
  }

  private static func twoDevices(_ world: TestWorld) async throws -> (TestDevice, TestDevice) {
    let (a, b) = (try await world.device("A"), try await world.device("B"))
    for path in ["/d", "/d/e"] { try await a.create(path) }
    try await a.create("/d/e/f", "1")
    try await world.settle(a, b)
    return (a, b)
  }

  /// Gives the current words to the world and to a device that was logged out.
  private static func passWords(from a: TestDevice, to b: TestDevice, _ world: TestWorld) async throws {
    let words = try await users(a).accessWords(for: a.localUserID)
    guard words != world.words() else { return }
    world.setWords(words)
    try await users(b).renewLogin(of: b.localUserID, words: words)
  }

  private static func generation(_ device: TestDevice) async throws -> UInt32 {
    let user = try #require(UserID(text: try device.localUserID))
    return try await users(device).keys(for: user).signGen
  }

  // MARK: Rotating keys

  @Test("rotated keys: both devices write before, between and after, and a fresh one reads everything")
  func rotationUnderLoad() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      for round in 1...3 {
        try await b.edit("/d/e/f", "b\(round)")
        try await b.create("/d/b\(round)", "b")
        // B's commit is in flight, signed with the old key.
        b.network.fail(.loseRequest, "POST", Routes.commits)
        await #expect(throws: (any Error).self) { try await b.push() }
        try await a.create("/d/a\(round)", "a")
        let rotation = try await Self.users(a).rotateKeys(for: a.localUserID)
        #expect(rotation.generation == UInt32(round + 1))
        #expect(rotation.revokedDevices == 0 && rotation.queuedRetirements == 0)
        try await world.settle(a, b)
        #expect(try await Self.generation(b) == UInt32(round + 1))
      }
      let c = try await world.device("C")
      try await world.settle(c)
      #expect(try await c.content(of: "/d/e/f")?.data == Data("b3".utf8))
      #expect(try await c.content(of: "/d/a1")?.data == Data("a".utf8))
    }
  }

  @Test("a lost request or answer: the same call resumes, with one link", arguments: Change.allCases, [true, false])
  func lostMessages(_ change: Change, isAnswer: Bool) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      a.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", Routes.links)
      await #expect(throws: TransportError.self) { try await change.run(on: a) }
      try await a.create("/between", "2")
      try await change.run(on: a)
      #expect(try await a.api.zones(since: nil).chain?.seq == 1)
      try await Self.passWords(from: a, to: b, world)
      try await world.settle(a, b)
    }
  }

  @Test("an answer was lost and the call is not repeated: the engine adopts the change", arguments: Change.allCases)
  func adoptedBySync(_ change: Change) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      a.network.fail(.loseResponse, "POST", Routes.links)
      await #expect(throws: TransportError.self) { try await change.run(on: a) }
      try await a.relaunch()
      try await a.create("/after", "2")
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      #expect(try await Self.generation(a) == (change == .words ? 1 : 2))
      try await Self.passWords(from: a, to: b, world)
      #expect(change != .words || world.words() != nil)
      try await world.settle(a, b)
    }
  }

  @Test("a sync runs while the answer is under way: the change is made once", arguments: Change.allCases)
  func adoptedInBetween(_ change: Change) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      try await a.create("/between", "2")
      a.network.fail(.after { try await a.sync() }, "POST", Routes.links)
      try await change.run(on: a)
      #expect(try await a.api.zones(since: nil).chain?.seq == 1)
      try await Self.passWords(from: a, to: b, world)
      try await world.settle(a, b)
    }
  }

  /// - the server has accepted new words, their answer is lost, and the device's session and key are gone
  /// => the old words open nothing, so the device uses the pending ones
  @Test func pendingWords_openASessionWhenTheOldOnesDoNot() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      a.network.fail(.loseResponse, "POST", Routes.links)
      await #expect(throws: TransportError.self) { try await Change.words.run(on: a) }
      let own = try #require(try await Self.users(a).devices(of: a.localUserID).first { $0.isCurrent })
      try await Self.users(a).revokeDevice(own.id, of: a.localUserID)
      try await a.relaunch()
      try await Change.words.run(on: a)
      try await Self.passWords(from: a, to: b, world)
      try await world.settle(a, b)
    }
  }

  /// - a sync pins the chain with the new words before it has read the pending change
  @Test func pinnedButNotAdopted_thePendingWordsAreAdoptedLater() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      a.network.fail(.loseResponse, "POST", Routes.links)
      await #expect(throws: TransportError.self) { try await Change.words.run(on: a) }
      let user = try #require(UserID(text: try a.localUserID))
      let stored = try await a.database.read { try $0.identityChanges.pending(of: user) }
      let pending = try #require(stored)
      try await a.database.write { try $0.identityChanges.removePending(of: user) }
      try await a.sync()
      world.expectsSecurityErrors(["accessKeyChanged"], on: a)
      try await a.database.write { try $0.identityChanges.setPending(pending, of: user) }
      try await Change.words.run(on: a)
      #expect(try await Self.users(a).accessWords(for: a.localUserID) == pending.accessKey.words)
      #expect(try await a.api.zones(since: nil).chain?.seq == 1)
      try await Self.passWords(from: a, to: b, world)
      try await world.settle(a, b)
    }
  }

  @Test(
    "killed after each of its transactions, a change loses nothing and resumes", arguments: Change.allCases,
    [TestDevice.Network.dead, .alive])
  func killedAnywhere(_ change: Change, network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      var kills = 0
      for commits in 0..<12 {
        a.die(afterCommits: commits, network: network)
        do { try await change.run(on: a) } catch { #expect(a.isDead, "\(error)") }
        let isKilled = a.isDead
        try await a.relaunch()
        try await a.create("/a\(commits)", "a")
        try await a.sync()
        if isKilled {
          kills += 1
          try await change.run(on: a)
        }
        try await Self.passWords(from: a, to: b, world)
        try await b.edit("/d/e/f", "\(commits)")
        try await world.settle(b, a)
        if !isKilled { break }
      }
      #expect(kills >= 2)
      #expect(kills < 12)
    }
  }

  @Test("another device rotates the keys at the same moment: both changes are made", arguments: Change.allCases)
  func concurrentRotation(_ change: Change) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      a.network.fail(.before { try await Change.keys.run(on: b) }, "POST", Routes.links)
      try await change.run(on: a)
      #expect(try await Self.generation(a) == (change == .words ? 2 : 3))
      try await Self.passWords(from: a, to: b, world)
      try await b.create("/b", "2")
      try await world.settle(b, a)
    }
  }

  @Test("compromised keys: others are logged out, and the old keys are retired in each own zone")
  func compromisedKeys() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      let rotation = try await Self.users(a).rotateKeys(for: a.localUserID, areCompromised: true)
      #expect(rotation.revokedDevices == 1 && rotation.queuedRetirements == 4)
      try await a.create("/after", "2")
      // Another device's commit comes first, and an answer is lost.
      a.network.fail(.loseResponse, "POST", Routes.commits)
      await #expect(throws: TransportError.self) { try await a.sync() }
      try await b.create("/b", "3")
      try await b.sync()
      try await world.settle(a, b)
      let user = try #require(UserID(text: try a.localUserID))
      for device in [a, b] {
        let heads = try await device.database.read { try $0.zones.zones(localUser: 1).compactMap(\.head) }
        #expect(heads.map { $0.retiredBelow[user] } == [2, 2, 2, 2])
      }
      // Each zone was notified once.
      let count = try await a.retirementCount()
      #expect(count == 0)
    }
  }

  /// - the device that has declared the keys compromised is lost before it retires them
  /// => another device of the account retires them, also in a branch that is shared later
  @Test func anotherDeviceRetiresCompromisedKeys() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      try await Self.users(a).rotateKeys(for: a.localUserID, areCompromised: true)
      try await b.sync()
      let user = try a.userID
      let heads = try await b.database.read { try $0.zones.zones(localUser: 1).compactMap(\.head) }
      #expect(heads.map { $0.retiredBelow[user] } == [2, 2, 2, 2])
      let bob = try await world.device("bob", account: "bob")
      try await b.meet(bob)
      try await b.create("/list")
      try await b.share("/list", with: bob)
      for _ in 0..<2 { try await b.sync() }
      let later = try await b.database.read { try $0.zones.zones(localUser: 1).compactMap(\.head) }
      #expect(later.map { $0.retiredBelow[user] } == [2, 2, 2, 2, 2])
      // They have never signed anything in the branch: its first commit retires them.
      #expect(later.last?.seq == 0)
      try await world.settle(a, b)
      #expect(try await a.retirementCount() == 0)
    }
  }

  // MARK: Changing the words

  @Test("new words: the old ones open nothing, another device continues with the new ones")
  func newWords() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      let old = try #require(world.words())
      try await b.create("/queued", "2")
      let words = try await Self.users(a).changeAccessWords(for: a.localUserID)
      #expect(words != old && words.count == 24)
      #expect(try await Self.users(a).accessWords(for: a.localUserID) == words)
      try await a.sync()
      let refusal = await #expect(throws: ServerError.self) { try await b.sync() }
      #expect(refusal?.code == .unauthorized)
      let missing = await #expect(throws: ZDCError.self) { try await Self.users(b).login(words: old) }
      #expect(missing?.code == .accountNotFound)
      #expect(try await b.queueCount() == 2)
      world.setWords(words)
      try await Self.users(b).renewLogin(of: b.localUserID, words: words)
      try await world.settle(b, a)
      // Also the next session of each device.
      try await a.relaunch()
      try await b.relaunch()
      try await world.settle(a, b)
    }
  }

  @Test func renewedLogin_takesNoOtherAccount() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      _ = try await world.device("B", account: "bob")
      let words = try #require(world.words(of: "bob"))
      let error = await #expect(throws: ZDCError.self) {
        try await Self.users(a).renewLogin(of: a.localUserID, words: words)
      }
      #expect(error?.code == .otherAccount)
      #expect(try await Self.users(a).allLocalUserIDs() == [a.localUserID])
      try await a.create("/f", "1")
      try await a.sync()
    }
  }

  @Test("new words while another device's engine runs: it continues after the login")
  func newWordsWhileRunning() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      try await b.whileRunning {
        let words = try await Self.users(a).changeAccessWords(for: a.localUserID)
        world.setWords(words)
        try await b.create("/queued", "2")
        try await Self.users(b).renewLogin(of: b.localUserID, words: words)
        try await b.create("/later", "3")
        try await b.waitUntilQueueIsEmpty()
      }
      try await world.settle(a, b)
    }
  }

  // MARK: Closing

  @Test("a closed account is read but not written, on all devices, and cannot change any more")
  func closedAccount() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      try await a.create("/last", "2")
      try await a.sync()
      a.network.fail(.loseResponse, "POST", Routes.links)
      await #expect(throws: TransportError.self) { try await Self.users(a).closeAccount(a.localUserID) }
      try await Self.users(a).closeAccount(a.localUserID)
      for device in [a, b] {
        world.mayWait(device)
        try await device.create("/never", "3")
        for _ in 0..<2 {
          let error = await #expect(throws: ServerError.self) { try await device.sync() }
          #expect(error?.code == .accountClosed)
        }
        try await device.relaunch()
        let error = await #expect(throws: ServerError.self) { try await device.sync() }
        #expect(error?.code == .accountClosed)
      }
      let again = await #expect(throws: ServerError.self) { try await Self.users(a).rotateKeys(for: a.localUserID) }
      #expect(again?.code == .accountClosed)
      let c = try await world.device("C")
      try await world.settle(c)
      #expect(try await c.content(of: "/last")?.data == Data("2".utf8))
    }
  }

  // MARK: Devices

  @Test func aRevokedDeviceIsNotListedAnyMore_andMayLogInAgain() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      let manager = try Self.users(a)
      let devices = try await manager.devices(of: a.localUserID)
      // Both were added in the same millisecond, so their order is not determined.
      #expect(devices.count == 2 && devices.count(where: \.isCurrent) == 1)
      #expect(devices.allSatisfy { $0.lastLoginDate != nil })
      let other = try #require(devices.first { !$0.isCurrent }).id
      try await manager.revokeDevice(other, of: a.localUserID)
      #expect(try await manager.devices(of: a.localUserID).map(\.isCurrent) == [true])
      for id in [other, "no id"] {
        let error = await #expect(throws: ZDCError.self) { try await manager.revokeDevice(id, of: a.localUserID) }
        #expect(error?.code == .deviceNotFound)
      }
      // B still has the words.
      try await b.create("/b", "2")
      try await world.settle(b, a)
      #expect(try await manager.devices(of: a.localUserID).count == 2)
    }
  }

  // MARK: Dishonest servers

  @Test("a server that accepts a change and later denies it is found out", arguments: [Change.keys, .words])
  func deniedChange(_ change: Change) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      a.network.fail(.answer(status: 201, code: "ignored"), "POST", Routes.links)
      try await change.run(on: a)
      world.expectsSecurityErrors(["identityChainRollback"], on: a)
      world.mayWait(a)
      try await a.relaunch()
      try await a.create("/never", "2")
      let error = await #expect(throws: ZDCSecurityError.self) { try await a.sync() }
      #expect(error?.code == .identityChainRollback)
      try await b.create("/b", "3")
      try await b.sync()
    }
  }

  @Test("a server that says conflict and shows no link: nothing changes, and the same bytes are sent again")
  func inventedConflict() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.twoDevices(world)
      a.network.fail(.answer(status: 409, code: "conflict"), "POST", Routes.links, times: 2)
      for _ in 0..<2 {
        let error = await #expect(throws: ServerError.self) { try await Change.words.run(on: a) }
        #expect(error?.code == .conflict)
      }
      #expect(try await Self.users(a).accessWords(for: a.localUserID) == world.words())
      let user = try #require(UserID(text: try a.localUserID))
      let pending = try await a.database.read { try $0.identityChanges.pending(of: user)?.accessKey.words }
      try await Change.words.run(on: a)
      #expect(try await Self.users(a).accessWords(for: a.localUserID) == pending)
      try await Self.passWords(from: a, to: b, world)
      try await world.settle(a, b)
    }
  }
}
