import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Earlier versions of nodes: listed, read and restored, from a server that may lie.
struct NodeVersionTests {
  private static func versions(_ path: String, _ device: TestDevice) async throws -> [ZDCNodeVersion] {
    let node = try await device.node(path)
    return try await device.syncManager.versions(ofNodeID: node.uuid, localUserID: try device.localUserID)
  }

  private static func data(_ version: ZDCNodeVersion, _ device: TestDevice) async throws -> String {
    let file = try await #require(try device.zdc.downloadManager).downloadNodeData(of: version)
    return String(decoding: try ZDCFileConversion.decryptCryptoFile(intoMemory: file), as: UTF8.self)
  }

  private static func restore(_ version: ZDCNodeVersion, _ device: TestDevice) async throws {
    try await device.syncManager.restore(version, localUserID: try device.localUserID)
  }

  /// - three texts and two names, on two devices and a fresh one
  /// => all of them list and read the same versions, newest first
  @Test func allDevicesListAndReadTheSameVersions() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/n", "one")
      try await world.settle(a, b)
      try await b.edit("/n", "two")
      try await world.settle(a, b)
      try await a.rename("/n", to: "m")
      try await world.settle(a, b)
      try await a.edit("/m", "three")
      try await world.settle(a, b)
      let c = try await world.device("C")
      try await world.settle(a, b, c)
      for device in [a, b, c] {
        let versions = try await Self.versions("/m", device)
        #expect(versions.map(\.name) == ["m", "n", "n"])
        #expect(versions.allSatisfy { $0.isContentKept && $0.keptUntil != nil })
        #expect(versions.allSatisfy { (try? device.localUserID) == $0.authorID })
        var texts: [String] = []
        for version in versions { texts.append(try await Self.data(version, device)) }
        #expect(texts == ["two", "two", "one"])
      }
    }
  }

  /// - an earlier version is restored on B while offline, and sent later
  /// => every device has its content; no content was sent; the replaced one is a version now
  @Test func aRestoredVersionIsTheNewestOne() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      let large = String(repeating: "large content ", count: 20_000)
      try await a.create("/n", large)
      try await world.settle(a, b)
      try await a.edit("/n", "small")
      try await world.settle(a, b)
      _ = b.recorder.take()
      try await Self.restore(try #require(try await Self.versions("/n", b).first), b)
      #expect(b.recorder.take() == ["modified data /n"])
      try await b.relaunch()
      #expect(try await b.download() == 1)
      #expect(try await b.content(of: "/n")?.data == Data(large.utf8))
      try await b.sync()
      #expect(b.network.count("POST", Routes.blobs) == 0)
      _ = a.recorder.take()
      try await world.settle(a, b)
      #expect(a.recorder.take() == ["modified data /n"])
      for device in [a, b] {
        #expect(try await device.content(of: "/n")?.data == Data(large.utf8))
        #expect(try await Self.data(try #require(try await Self.versions("/n", device).first), device) == "small")
      }
      // And back again.
      try await Self.restore(try #require(try await Self.versions("/n", a).first), a)
      try await a.edit("/n", "edited")
      try await world.settle(a, b)
      for device in [a, b] { #expect(try await device.content(of: "/n")?.data == Data("edited".utf8)) }
    }
  }

  /// - a device is offline while the content is replaced, and then restored
  /// => it gets the restored content, which it has seen before
  @Test func aDeviceThatHasNotSeenTheReplacingContent() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/n", "one")
      try await world.settle(a, b)
      try await a.edit("/n", "two")
      try await a.sync()
      try await Self.restore(try #require(try await Self.versions("/n", a).first), a)
      try await a.sync()
      #expect(try await b.sync().frozenZones.isEmpty)
      try await world.settle(a, b)
      for device in [a, b] { #expect(try await device.content(of: "/n")?.data == Data("one".utf8)) }
    }
  }

  /// - the node is renamed, or gets a child, by another device before the restoration is sent: both hold
  /// - its content is changed: that content stays, and the journal has an entry
  /// - the node is also renamed here: that holds in both cases
  @Test(arguments: [false, true], [false, true])
  func anotherDeviceWasFaster(changesContent: Bool, isRenamedHere: Bool) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/n", "one")
      try await a.sync()
      try await a.edit("/n", "two")
      try await world.settle(a, b)
      try await Self.restore(try #require(try await Self.versions("/n", b).first), b)
      if isRenamedHere { try await b.rename("/n", to: "here") }
      if changesContent {
        try await a.edit("/n", "three")
      } else if isRenamedHere {
        try await a.create("/n/below")
      } else {
        try await a.rename("/n", to: "m")
      }
      try await a.sync()
      try await world.settle(a, b)
      let text = changesContent ? "three" : "one"
      let path = isRenamedHere ? "/here" : changesContent ? "/n" : "/m"
      for device in [a, b] {
        #expect(try await device.content(of: path)?.data == Data(text.utf8))
        #expect(try await device.queueCount() == 0)
      }
      let entries = try await b.write { _, cloud in cloud.mergeJournal().count }
      #expect(entries == (changesContent ? 1 : 0))
    }
  }

  /// - the server has released the content when the restoration is sent
  /// => the node keeps the content that it has
  @Test func contentThatIsGoneWhenTheRestorationIsSent() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/n", "one")
      try await a.sync()
      try await a.edit("/n", "two")
      try await world.settle(a, b)
      try await Self.restore(try #require(try await Self.versions("/n", b).first), b)
      world.clock.advance(by: .seconds(31 * 24 * 3_600))
      try await world.server.collect()
      try await world.settle(a, b)
      for device in [a, b] {
        #expect(try await device.content(of: "/n")?.data == Data("two".utf8))
        #expect(try await device.queueCount() == 0)
        #expect(try await Self.versions("/n", device).isEmpty)
      }
    }
  }

  @Test func whatCannotBeRestored_saysWhy() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/n", "one")
      try await a.sync()
      try await a.rename("/n", to: "m")
      try await a.sync()
      let same = try #require(try await Self.versions("/m", a).first)
      await #expect { try await Self.restore(same, a) } throws: { ($0 as? ZDCCloudError)?.code == .invalidParameter }
      try await a.edit("/m", "two")
      await #expect { try await Self.restore(same, a) } throws: { ($0 as? ZDCCloudError)?.code == .conflict }
      try await a.sync()
      let node = try await a.node("/m")
      try await a.delete("/m")
      await #expect { try await Self.restore(same, a) } throws: { ($0 as? ZDCError)?.code == .nodeNotFound }
      await #expect {
        _ = try await a.syncManager.versions(ofNodeID: node.uuid, localUserID: try a.localUserID)
      } throws: { ($0 as? ZDCError)?.code == .nodeNotFound }
      try await a.sync()
    }
  }

  /// - the key of the tree is replaced three times, and the path is written under each key
  /// => versions of all generations open, on a fresh device too
  @Test func versionsUnderOldKeysOpen() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for path in ["/d", "/d/e"] { try await a.create(path) }
      try await a.create("/d/e/n", "0")
      try await a.sync()
      let user = try #require(UserID(text: try a.localUserID))
      let rogue = try await RogueWriter(words: try #require(world.words()), user: user, server: world.server)
      for number in 1...3 {
        try await rogue.rotateHome()
        try await a.sync()
        try await a.edit("/d/e/n", "\(number)")
        try await a.sync()
      }
      let c = try await world.device("C")
      try await c.sync()
      for device in [a, c] {
        var texts: [String] = []
        for version in try await Self.versions("/d/e/n", device) { texts.append(try await Self.data(version, device)) }
        #expect(texts == ["2", "1", "0"])
      }
    }
  }

  /// A server that alters, exchanges or withholds records of versions: none of them is shown.
  @Test(arguments: ["altered", "of another node", "of another version", "withheld"])
  func aVersionThatTheLogDoesNotName(lie: String) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await TestDevice("A", server: world.server, clock: world.clock, through: hostile)
      _ = try await a.createAccount()
      for path in ["/n", "/m"] { try await a.create(path, "one") }
      try await a.sync()
      for text in ["two", "three"] {
        for path in ["/n", "/m"] { try await a.edit(path, text) }
        try await a.sync()
      }
      let ids = try await Self.versions("/n", a).map(\.id)
      #expect(ids.count == 2)
      let other = try #require(await Self.oldestRecord(of: "/m", a, hostile))
      let older = try #require(await Self.oldestRecord(of: "/n", a, hostile))
      let told: Lie =
        switch lie {
        case "altered": .turnBit(.record, at: -1)
        case "of another node": .substitute(.record, with: other)
        case "of another version": .substitute(.record, with: older)
        default: .withhold(.record)
        }
      let before = hostile.liesTold
      hostile.tell(told, to: "A")
      // The one that is what the log says is shown as that, and never as another one.
      #expect(try await Self.versions("/n", a).map(\.id) == (lie == "of another version" ? [ids[1]] : []))
      #expect(hostile.liesTold > before)
      hostile.stopTampering()
      let honest = try await Self.versions("/n", a)
      #expect(honest.map(\.id) == ids)
      // Altered content is typed, and nothing of it is handed out.
      hostile.tell(.turnBit(.smallContent, at: -1), to: "A")
      await #expect(throws: ZDCSecurityError.self) { try await Self.data(honest[1], a) }
      hostile.stopTampering()
      #expect(try await Self.data(honest[1], a) == "one")
      try await a.close()
    }
  }

  /// Returns the bytes of the oldest record of a node, as the server sends it.
  private static func oldestRecord(
    of path: String, _ device: TestDevice, _ hostile: HostileServer
  ) async throws
    -> [UInt8]?
  {
    let found = Found()
    hostile.tell(
      .rewrite(.record) { items in
        found.bytes.withLock { $0 = items.last?.object }
      }, to: "A")
    _ = try await versions(path, device)
    hostile.stopTampering()
    return found.bytes.withLock { $0 }
  }

  private final class Found: Sendable {
    let bytes = Mutex<[UInt8]?>(nil)
  }

  /// Dates and authors are the record's, whatever the server says about times.
  @Test func aForgedDateChangesNoVersion() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await TestDevice("A", server: world.server, clock: world.clock, through: hostile)
      _ = try await a.createAccount()
      try await a.create("/n", "one")
      try await a.sync()
      try await a.edit("/n", "two")
      try await a.sync()
      let honest = try #require(try await Self.versions("/n", a).first)
      hostile.tell(.rewrite(.record) { items in for index in items.indices { items[index].bytes[5] ^= 1 } }, to: "A")
      hostile.tell(.body("POST", Routes.kept) { $0[8] ^= 1 }, to: "A")
      let forged = try #require(try await Self.versions("/n", a).first)
      #expect(hostile.liesTold > 0)
      #expect(forged.date == honest.date && forged.replacedAt == honest.replacedAt && forged.id == honest.id)
      #expect(forged.keptUntil != honest.keptUntil)
      try await a.close()
    }
  }

  // MARK: Several restorations

  /// How the request with the first restoration ends.
  enum FirstRequest: CaseIterable, Sendable {
    /// Nothing: it was not made yet.
    case isQueued
    case isAccepted
    case answerIsLost
    /// Another device renames the node first.
    case isOvertaken
    /// Another device changes the content first.
    case isReplaced
    /// The server has released the content that it restores.
    case contentIsGone
  }

  /// - the content is "three"; B restores other ones, all but the first while the request with the first is on its way
  /// => the last one counts, unless other content came first or it is gone, which the journal says; later edits hold
  @Test(
    "of several restorations the last one counts",
    arguments: [["two", "one"], ["two", "three"], ["two", "one", "two"], ["two", "one", "three"]],
    FirstRequest.allCases)
  func aVersionIsRestoredWhileAnotherOneIsSent(texts: [String], request: FirstRequest) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/n", "one")
      for text in ["two", "three"] {
        try await a.sync()
        try await a.edit("/n", text)
      }
      try await a.sync()
      try await a.rename("/n", to: "m")
      try await world.settle(a, b)
      // Newest first.
      let versions = Dictionary(uniqueKeysWithValues: zip(["three", "two", "one"], try await Self.versions("/m", b)))
      let restorations = try texts.map { try #require(versions[$0]) }
      try await Self.restore(restorations[0], b)
      let restoreRest: @Sendable () async throws -> Void = {
        try await Self.interfere(request, a, world)
        for version in restorations.dropFirst() { try await Self.restore(version, b) }
      }
      if request == .isQueued { try await restoreRest() }
      if request != .isQueued { b.network.fail(.before(restoreRest), "POST", Routes.commits) }
      if request == .answerIsLost { b.network.fail(.loseResponse, "POST", Routes.commits) }
      do { try await b.sync() } catch is TransportError {}
      try await Self.expectLast(try #require(texts.last), request, a, b)
    }
  }

  private static func interfere(_ request: FirstRequest, _ a: TestDevice, _ world: TestWorld) async throws {
    switch request {
    case .isOvertaken: try await a.rename("/m", to: "n")
    case .isReplaced: try await a.edit("/m", "four")
    case .contentIsGone:
      world.clock.advance(by: .seconds(31 * 24 * 3_600))
      try await world.server.collect()
    case .isQueued, .isAccepted, .answerIsLost: break
    }
    try await a.push()
  }

  private static func expectLast(
    _ text: String, _ request: FirstRequest, _ a: TestDevice, _ b: TestDevice
  ) async throws {
    try await TestWorld.settle([a, b])
    let path = request == .isOvertaken ? "/n" : "/m"
    let expected = request == .isReplaced ? "four" : request == .contentIsGone ? "three" : text
    for device in [a, b] {
      #expect(try await device.content(of: path)?.data == Data(expected.utf8), "\(device.name)")
      #expect(try await device.queueCount() == 0)
      #expect(try await device.sync().frozenZones.isEmpty)
    }
    let isLost = request == .isReplaced || (request == .contentIsGone && text != "three")
    #expect(try await b.write { _, cloud in cloud.mergeJournal().map(\.kind) } == (isLost ? [.cloudWon] : []))
    for (device, later) in [(b, "five"), (a, "six")] {
      try await device.edit(path, later)
      try await TestWorld.settle([a, b])
      for device in [a, b] { #expect(try await device.content(of: path)?.data == Data(later.utf8)) }
    }
  }
}
