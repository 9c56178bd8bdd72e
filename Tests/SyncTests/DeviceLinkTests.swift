import Foundation
import Testing
import ZDCAccounts
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Adding a device by the code that it shows (PROTOCOL 3.4).
struct DeviceLinkTests {
  private static func users(_ device: TestDevice) throws -> ZDCLocalUserManager {
    try #require(try device.zdc.localUserManager)
  }

  private static func emptyDevice(_ world: TestWorld) async throws -> TestDevice {
    try await TestDevice("new", server: world.server, clock: world.clock)
  }

  /// The account that `a` gives to the device, which has not added it yet.
  private static func offer(_ a: TestDevice, to device: TestDevice) async throws -> ZDCLinkedAccount {
    let link = try await users(device).startDeviceLink()
    async let account = link.account()
    let request = try await users(a).linkRequest(code: link.code, for: a.localUserID)
    let digits = try await request.approve()
    let offered = try await account
    #expect(offered.digits == digits && offered.digits.count == 6)
    #expect(offered.userID == (try a.localUserID))
    return offered
  }

  @Test func aNewDeviceIsAddedByItsCode_andHasTheTree() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/list", "milk")
      try await a.sync()
      let b = try await Self.emptyDevice(world)
      let user = try await Self.offer(a, to: b).add()
      _ = try await b.syncManager.pullOnce(localUserID: user.uuid)
      let words = try await Self.users(b).accessWords(for: user.uuid)
      #expect(words == world.words())
      let path = ZDCTreesystemPath(pathComponents: ["list"])
      let zdc = try b.zdc
      let node = try await b.database.asyncRead {
        zdc.cloudTransaction($0, forLocalUserID: user.uuid)?.node(path: path)
      }
      #expect(node != nil)
    }
  }

  @Test("the server cannot exchange the device's key or the answer", arguments: [true, false])
  func exchanged(isKey: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await Self.emptyDevice(world)
      let link = try await Self.users(b).startDeviceLink()
      if isKey { a.network.fail(.corruptResponse(byteAt: 600), "GET", Routes.deviceLink) }
      b.network.fail(.corruptResponse(byteAt: -1), "GET", Routes.deviceLinkAnswer)
      let error = await #expect(throws: ZDCSecurityError.self) {
        let request = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID)
        async let digits = request.approve()
        _ = try await link.account()
        _ = try await digits
      }
      #expect(error?.code == (isKey ? .keyCommitmentMismatch : .messageAuthFailed))
    }
  }

  /// - the server has revealed nonces of its own, to both devices
  @Test func theServerCannotChooseTheNonce() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await Self.emptyDevice(world)
      let link = try await Self.users(b).startDeviceLink()
      let request = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID)
      a.network.fail(.corruptResponse(byteAt: 3), "GET", Routes.deviceLinkNonce)
      async let account = link.account()
      let error = await #expect(throws: ZDCSecurityError.self) { try await request.approve() }
      #expect(error?.code == .keyCommitmentMismatch)
      _ = try await account
    }
  }

  /// - another person has seen the code, and gives the new device their account; they get the nonce, and the device's request
  ///   fails
  /// => the device asks for no other answer: with the nonce, a server could choose one that gives the right digits
  @Test func theFirstAnswerCounts() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let other = try await world.device("other", account: "other")
      let b = try await Self.emptyDevice(world)
      let link = try await Self.users(b).startDeviceLink()
      b.network.fail(.loseResponse, "PUT", Routes.deviceLinkNonce)
      async let given = Self.users(other).linkRequest(code: link.code, for: other.localUserID).approve()
      await #expect(throws: (any Error).self) { try await link.account() }
      let digits = try await given
      let requests = b.network.count("GET", Routes.deviceLinkAnswer)
      let request = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID)
      await #expect(throws: ServerError.self) { try await request.approve() }
      let account = try await link.account()
      #expect(account.userID == (try other.localUserID) && account.digits == digits)
      #expect(b.network.count("GET", Routes.deviceLinkAnswer) == requests)
    }
  }

  /// - the answer of the server to the approval is lost, and the user approves again
  @Test func anApprovalMayBeRepeated() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await Self.emptyDevice(world)
      let link = try await Self.users(b).startDeviceLink()
      let request = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID)
      a.network.fail(.loseResponse, "PUT", Routes.deviceLinkAnswer)
      await #expect(throws: (any Error).self) { try await request.approve() }
      async let account = link.account()
      let digits = try await request.approve()
      #expect(try await account.digits == digits)
    }
  }

  @Test("a code is taken only as it stands, and not from a web address")
  func codes() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await Self.emptyDevice(world)
      let code = try await Self.users(b).startDeviceLink().code
      let users = try Self.users(a)
      let user = try a.localUserID
      _ = try await users.linkRequest(code: " \(code)\n", for: user)
      let wrapped = await #expect(throws: ZDCSecurityError.self) {
        try await users.linkRequest(code: "https://example.org/#\(code)", for: user)
      }
      #expect(wrapped?.code == .linkRequiresInAppScan)
      for text in ["", "zdclink:1:", "zdclink:2:" + code.dropFirst(10), String(code.dropLast()), code + "y"] {
        let error = await #expect(throws: ZDCError.self) { try await users.linkRequest(code: text, for: user) }
        #expect(error?.code == .invalidLink, "\(text)")
      }
    }
  }

  @Test func aCodeExpires() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await Self.emptyDevice(world)
      let link = try await Self.users(b).startDeviceLink()
      let request = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID)
      world.clock.advance(by: .seconds(601))
      let steps: [@Sendable () async throws -> Void] = [
        { _ = try await request.approve() }, { _ = try await link.account() },
        { _ = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID) },
      ]
      for step in steps {
        let error = await #expect(throws: ZDCError.self) { try await step() }
        #expect(error?.code == .linkExpired)
      }
    }
  }

  /// - the server has put a branch back between the approval and the new device's first pull
  /// => the device does not show it, unless its user accepts it
  @Test func aBranchIsNotOlderThanTheLinkingDeviceKnew() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let people = try await ListChangeTests.People(world)
      let alice = people.alice
      try await alice.create("/list")
      try await alice.create("/list/milk", "1")
      try await alice.share("/list", with: people.bob)
      try await alice.sync()
      let backup = try await world.server.backup()
      try await alice.edit("/list/milk", "2")
      try await alice.sync()
      let b = try await Self.emptyDevice(world)
      let account = try await Self.offer(alice, to: b)
      try await world.server.restore(backup)
      let user = try await account.add()
      _ = try? await b.syncManager.pullOnce(localUserID: user.uuid)
      let frozen = try await b.syncManager.frozenZones(localUserID: user.uuid)
      #expect(frozen.map(\.error) == [.zoneRollback])
      let zone = try #require(frozen.first?.zone)
      _ = try await b.syncManager.acceptServerState(ofZone: zone, localUserID: user.uuid)
      _ = try await b.syncManager.pullOnce(localUserID: user.uuid)
      #expect(try await b.syncManager.frozenZones(localUserID: user.uuid).isEmpty)
    }
  }

  /// The server was put back between the approval and the new device's first request.
  @Test("a new device is not shown less than the linking device knew", arguments: [true, false])
  func rolledBack(isChain: Bool) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      try await a.create("/list", "milk")
      try await a.sync()
      let backup = try await world.server.backup()
      if isChain {
        try await Self.users(a).rotateKeys(for: a.localUserID)
      } else {
        try await a.edit("/list", "eggs")
        try await a.sync()
      }
      let b = try await Self.emptyDevice(world)
      let account = try await Self.offer(a, to: b)
      try await world.server.restore(backup)
      let error = await #expect(throws: ZDCSecurityError.self) {
        let user = try await account.add()
        _ = try await b.syncManager.pullOnce(localUserID: user.uuid)
      }
      #expect(error?.code == (isChain ? .identityChainRollback : .zoneRollback))
    }
  }

  /// - the new device dies after each of the transactions that add the account
  /// => a second link completes what the first has begun, and the device has the tree
  @Test(arguments: [TestDevice.Network.dead, .alive])
  func aDeviceThatDiesWhileItIsAdded(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/list", "milk")
      try await a.sync()
      var kills = 0
      for commits in 0..<20 {
        let b = try await Self.emptyDevice(world)
        let account = try await Self.offer(a, to: b)
        b.die(afterCommits: commits, network: network)
        do { _ = try await account.add() } catch { #expect(b.isDead, "\(error)") }
        let isKilled = b.isDead
        try await b.relaunch()
        if isKilled {
          kills += 1
          _ = try await Self.offer(a, to: b).add()
        }
        try await Self.expectTree(of: a, on: b)
        try await b.close()
        if !isKilled { break }
      }
      #expect(kills >= 1 && kills < 20, "\(kills)")
    }
  }

  /// - the device that approves dies after each of its transactions
  /// => the new device has the account, of the first approval or of the repeated one, and no other device has it
  @Test(arguments: [TestDevice.Network.dead, .alive])
  func aDeviceThatDiesWhileItApproves(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/list", "milk")
      try await a.sync()
      var kills = 0
      for commits in 0..<10 {
        let b = try await Self.emptyDevice(world)
        let link = try await Self.users(b).startDeviceLink()
        let request = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID)
        async let offered = link.account()
        a.die(afterCommits: commits, network: network)
        var digits: String?
        do { digits = try await request.approve() } catch { #expect(a.isDead, "\(error)") }
        let isKilled = a.isDead
        if isKilled { kills += 1 }
        try await a.relaunch()
        if digits == nil {
          digits = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID).approve()
        }
        let account = try await offered
        #expect(account.userID == (try a.localUserID) && account.digits == digits)
        _ = try await account.add()
        try await Self.expectTree(of: a, on: b)
        try await b.close()
        if !isKilled { break }
      }
      #expect(kills >= 1 && kills < 10, "\(kills)")
    }
  }

  private static func expectTree(of a: TestDevice, on b: TestDevice) async throws {
    #expect(try await b.knownAccounts() == a.localUserIDs)
    try await b.sync()
    for device in [a, b] { try await device.download() }
    #expect(try await b.tree() == a.tree())
    #expect(try await b.securityErrors() == [])
  }
}
