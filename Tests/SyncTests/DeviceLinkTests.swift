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
    try await request.approve()
    let offered = try await account
    #expect(offered.digits == request.digits && offered.digits.count == 6)
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
        try await Self.users(a).linkRequest(code: link.code, for: a.localUserID).approve()
        _ = try await link.account()
      }
      #expect(error?.code == (isKey ? .keyCommitmentMismatch : .messageAuthFailed))
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
        { try await request.approve() }, { _ = try await link.account() },
        { _ = try await Self.users(a).linkRequest(code: link.code, for: a.localUserID) },
      ]
      for step in steps {
        let error = await #expect(throws: ZDCError.self) { try await step() }
        #expect(error?.code == .linkExpired)
      }
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
}
