import Foundation
import Testing
import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Names and avatars, and the people who see them.
struct ProfileTests {
  private static let picture = Data((0..<20_000).map { UInt8($0 % 251) })

  /// Two people of whom the first shares her home with the second, who accepts it.
  private static func sharing(_ world: TestWorld) async throws -> (alice: TestDevice, bob: TestDevice) {
    let (alice, bob) = (try await world.device("alice"), try await world.device("bob", account: "bob"))
    try await alice.meet(bob)
    try await bob.meet(alice)
    try await alice.share(with: bob)
    try await alice.sync()
    try await bob.accept(alice)
    return (alice, bob)
  }

  @Test func theNameAndTheAvatarReachThePeopleWithWhomTheUserShares() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      try await alice.setProfile("Alice", Self.picture)
      #expect(try await alice.name(of: alice) == "Alice")
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.name(of: alice) == "Alice")
      #expect(try await bob.picture(of: alice) == Self.picture)
      #expect(bob.recorder.take().filter { $0.hasPrefix("user") } == ["user Alice"])
      #expect(try await bob.messages(from: alice) == [])
      #expect(try await alice.messages(.outbox) == [])
      try await bob.setProfile("Bob")
      try await bob.sync()
      try await alice.sync()
      #expect(try await alice.name(of: bob) == "Bob")
      #expect(try await alice.picture(of: bob) == nil)
    }
  }

  @Test func allDevicesOfBothHaveIt() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      let phone = try await world.device("alice's phone")
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.sync()
      try await alice.setProfile("Alice", Self.picture)
      try await world.settle(alice, bob, phone, tablet)
      #expect(try await phone.name(of: phone) == "Alice")
      for device in [bob, tablet] {
        try await device.meet(alice)
        #expect(try await device.name(of: alice) == "Alice")
        #expect(try await device.picture(of: alice) == Self.picture)
        #expect(device.recorder.take().filter { $0.hasPrefix("user") || $0.hasPrefix("new /") } == ["user Alice"])
      }
      // A device of later gets only the newest one.
      try await alice.setProfile("Alice B.")
      try await world.settle(alice, bob)
      let late = try await world.device("bob's watch", account: "bob")
      try await late.sync()
      try await late.meet(alice)
      #expect(try await late.name(of: alice) == "Alice B.")
      #expect(late.recorder.take().filter { $0.hasPrefix("user") } == ["user Alice B."])
    }
  }

  @Test func peopleWhoComeLaterGetItThen() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = (try await world.device("alice"), try await world.device("bob", account: "bob"))
      try await alice.meet(bob)
      try await alice.setProfile("Alice")
      try await bob.setProfile("Bob")
      try await alice.sync()
      try await bob.sync()
      #expect(alice.network.count("POST", Routes.messages) == 0)
      try await alice.create("/list")
      try await alice.share("/list", with: bob)
      try await world.settle(alice)
      try await bob.accept(try await alice.cloudID("/list"), of: alice)
      try await world.settle(bob, alice)
      #expect(try await bob.name(of: alice) == "Alice")
      #expect(try await alice.name(of: bob) == "Bob")
    }
  }

  /// - the profile was set on one device, and another device of the user shares
  /// => the new person gets it once
  @Test func aDeviceThatDidNotSetIt_sendsItToThosePeopleWhomItAdds() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = (try await world.device("alice"), try await world.device("bob", account: "bob"))
      let phone = try await world.device("alice's phone")
      try await alice.setProfile("Alice")
      try await world.settle(alice, phone)
      try await phone.meet(bob)
      try await phone.share(with: bob)
      try await world.settle(phone)
      try await bob.accept(phone)
      try await bob.sync()
      #expect(try await bob.name(of: phone) == "Alice")
      try await world.settle(alice, bob)
      #expect(bob.recorder.take().filter { $0.hasPrefix("user") } == ["user Alice"])
    }
  }

  @Test func severalChangesBeforeAPush_areOneVersion_sentOnce() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      for name in ["A", "Al", "Alice"] { try await alice.setProfile(name) }
      let before = alice.network.count("POST", Routes.commits)
      try await alice.sync()
      #expect(alice.network.count("POST", Routes.messages) == 1)
      #expect(alice.network.count("POST", Routes.commits) == before + 1)
      try await bob.sync()
      #expect(bob.recorder.take().filter { $0.hasPrefix("user") } == ["user Alice"])
      try await alice.setProfile("Alice")
      #expect(try await alice.queueCount() == 0)
    }
  }

  @Test func onlyTheNewestOfSeveralThatWaitIsTakenOver() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      for name in ["A", "Al", "Alice"] {
        try await alice.setProfile(name)
        try await alice.sync()
      }
      let before = bob.network.count("POST", Routes.commits)
      try await bob.sync()
      #expect(bob.network.count("POST", Routes.commits) == before + 1)
      #expect(bob.recorder.take().filter { $0.hasPrefix("user") } == ["user Alice"])
      #expect(try await bob.waitingCount() == 0)
    }
  }

  @Test func aStrangersNameIsNotShown_beforeTheUserAccepts() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = (try await world.device("alice"), try await world.device("bob", account: "bob"))
      try await alice.meet(bob)
      try await bob.meet(alice)
      try await alice.setProfile("Alice")
      try await alice.share(with: bob)
      try await world.settle(alice)
      try await bob.sync()
      #expect(try await bob.name(of: alice) == nil)
      #expect(try await bob.waitingCount() == 1)
      try await bob.acceptMessages(of: alice)
      #expect(try await bob.name(of: alice) == "Alice")
    }
  }

  @Test func aBlockedPersonGetsNothing_andAnUnwantedProfileEndsInNoQueue() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      try await bob.syncManager.declineMessages(
        fromUserID: alice.localUserID, isBlocking: true, forLocalUserID: bob.localUserID)
      try await alice.setProfile("Alice")
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      try await bob.sync()
      #expect(try await bob.name(of: alice) == nil)
      _ = try await alice.zdc.userManager?.block(try bob.localUserID)
      let before = alice.network.count("POST", Routes.messages)
      try await alice.setProfile("Alice B.")
      try await alice.sync()
      #expect(alice.network.count("POST", Routes.messages) == before)
    }
  }

  @Test func twoDevicesThatSetItAtTheSameTime_agree() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      let phone = try await world.device("alice's phone")
      try await phone.sync()
      try await alice.setProfile("from the laptop")
      try await phone.setProfile("from the phone")
      try await alice.sync()
      try await phone.sync()
      try await world.settle(alice, phone, bob)
      #expect(try await alice.name(of: alice) == "from the phone")
      #expect(try await phone.name(of: alice) == "from the phone")
      #expect(try await bob.name(of: alice) == "from the phone")
    }
  }

  @Test(arguments: [Routes.messages, Routes.commits], [true, false])
  func aLostAnswer_bringsTheProfileOnce(route: String, isAnswer: Bool) async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      try await alice.setProfile("Alice")
      alice.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", route)
      _ = try? await alice.sync()
      try await alice.sync()
      bob.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", route)
      _ = try? await bob.sync()
      try await world.settle(alice, bob)
      #expect(try await bob.name(of: alice) == "Alice")
      #expect(bob.recorder.take().filter { $0.hasPrefix("user") } == ["user Alice"])
    }
  }

  @Test(arguments: 1...8) func aDeviceThatDies_sendsTheProfileAfterItsNextStart(commits: Int) async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      try await alice.setProfile("Alice")
      alice.die(afterCommits: commits)
      _ = try? await alice.sync()
      try await alice.relaunch()
      #expect(try await alice.name(of: alice) == "Alice")
      try await alice.sync()
      bob.die(afterCommits: commits)
      _ = try? await bob.sync()
      try await bob.relaunch()
      try await bob.sync()
      #expect(try await bob.name(of: alice) == "Alice")
      #expect(try await alice.queueCount() == 0)
    }
  }

  @Test func aProfileBeyondItsLimits_isRefusedAtTheCall() async throws {
    try await TestWorld.run { world in
      let alice = try await world.device("alice")
      for profile in [
        ZDCProfile(name: String(repeating: "a", count: 257)), ZDCProfile(name: "two\nlines"),
        ZDCProfile(name: "abc\u{202E}cba"), ZDCProfile(name: "Alice", avatar: Data(count: 32_769)),
      ] {
        await #expect(throws: ZDCCloudError.self) {
          try await alice.write { _, cloud in try cloud.setProfile(profile) }
        }
      }
      #expect(try await alice.queueCount() == 0)
      let largest = ZDCProfile(name: String(repeating: "é", count: 128), avatar: Data(count: 32_768))
      try await alice.write { _, cloud in try cloud.setProfile(largest) }
      try await alice.sync()
      let user = try alice.localUserID
      let stored = try await alice.write { transaction, _ in transaction.profile(ofUserID: user) }
      #expect(stored == largest)
    }
  }

  /// - a version of the profile was sent to 998, 999 or 1,000 people before a person gets it
  /// => they get it if they are the thousandth at most
  @Test(arguments: [998, 999, 1_000]) func aThousandPeopleGetAVersion(before: Int) async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      let others = (0..<before).compactMap { _ in UserID((0..<32).map { _ in .random(in: .min ... .max) }) }
      #expect(others.count == before)
      try await alice.database.write { transaction in
        for other in others {
          try transaction.profiles.setSent(1, to: other, localUser: 1, tree: TestDevice.treeID)
        }
      }
      try await alice.setProfile("Alice")
      try await world.settle(alice, bob)
      #expect(try await bob.name(of: alice) == (before < Limits.profileRecipients ? "Alice" : nil))
      #expect(try await alice.queueCount() == 0)
    }
  }

  @Test func theNameNeverReachesTheServer_orALog() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.sharing(world)
      let (name, avatar) = ("canary-person-61bd20", "canary-avatar-40c7ef")
      alice.network.keepTraffic()
      bob.network.keepTraffic()
      try await alice.setProfile(name, Data(avatar.utf8))
      try await world.settle(alice, bob)
      #expect(try await bob.name(of: alice) == name)
      try await world.server.restart()
      let scanner = CanaryScanner([name, avatar])
      #expect(try scanner.scan(folder: world.server.folder).map(\.description) == [])
      #expect(scanner.scan(world.server.log.text, place: "log").map(\.description) == [])
      for device in [alice, bob] {
        #expect(scanner.scan(device.log.text, place: "\(device.name)'s log").map(\.description) == [])
        #expect(scanner.scan(device.network.traffic.flatMap { $0 }, place: "traffic").map(\.description) == [])
        #expect(try scanner.scan(folder: device.folder).map(\.description) == [])
      }
    }
  }
}

extension TestDevice {
  func setProfile(_ name: String, _ avatar: Data? = nil) async throws {
    try await write { _, cloud in try cloud.setProfile(ZDCProfile(name: name, avatar: avatar)) }
  }

  /// The name that this device shows of another one's user, or of its own.
  func name(of other: TestDevice) async throws -> String? {
    let user = try other.localUserID
    return try await write { transaction, _ in
      let shown = transaction.user(id: user)?.name
      if let local = transaction.localUser(id: user), local.name != shown { throw TestFailure("two names of one user") }
      return shown
    }
  }

  func picture(of other: TestDevice) async throws -> Data? {
    let user = try other.localUserID
    return try await write { transaction, _ in transaction.profile(ofUserID: user)?.avatar }
  }

  /// The number of messages in the mailbox.
  func waitingCount() async throws -> Int {
    let inbox = TreeID.derive(owner: try userID, trunk: .inbox, appTreeID: TestDevice.treeID)
    return try await api.waitingMessages(in: inbox, after: 0).messages.count
  }
}
