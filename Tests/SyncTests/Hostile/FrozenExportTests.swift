import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileServerTests {
  /// - the server goes back to yesterday's state: the tree freezes
  /// - of the content that it still has, it swaps one blob, garbles a batch answer, and withholds one blob
  /// => content that verifies against the last accepted records is returned; everything else has its error
  @Test func frozenTree_isTakenOut_asFarAsItVerifies() async throws {
    let act = try await HostileAct.start(
      HostileScenario("C6", "29", story: "", error: "", .freezes, from: .current) { _ in })
    let yesterday = try await act.stage.server.fork(act.stage.early, clock: ManualClock())
    act.others.add(yesterday)
    try act.hostile.lead("B", to: yesterday)
    await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() }
    let before = try await DeviceState(of: act.victim)
    #expect(Array(before.frozen.values) == ["zoneRollback"])

    let (inner, other) = (try Self.blob("inner", act), try Self.blob("renamed", act))
    act.hostile.tell(
      .rewrite(.smallContent) { items in
        guard let wrong = items.first(where: { $0.blob == other })?.object else { return }
        for index in items.indices where items[index].blob == inner { items[index].object = wrong }
        items.removeAll { $0.blob == other }
      })
    var expected = [
      "/kept": "kept", "/folder/inner": "contentHashMismatch", "/renamed": "two", "/small": "blobGone",
      "/left": "blobGone", "/right": "blobGone", "/new": "blobGone", "/film": "blobGone",
    ]
    // A single request still returns /renamed.
    var found = try await Self.takeOut(act)
    #expect(found == expected)
    act.hostile.stopTampering()
    // The batch answer is garbage, so each blob is requested separately.
    act.hostile.tell(.body("POST", Routes.contents) { $0 = [9, 9, 9] })
    expected["/folder/inner"] = "i"
    found = try await Self.takeOut(act)
    #expect(found == expected)

    let after = try await DeviceState(of: act.victim)
    #expect(after.frozen == before.frozen && after.operations == before.operations && after.tree == before.tree)
    #expect(after.losses(since: before, reference: before) == [])
    try act.hostile.lead("B", to: act.fork)
    act.hostile.stopTampering()
    #expect(try await Self.takeOut(act).values.allSatisfy { !$0.contains("Gone") && !$0.contains("Mismatch") })
    try await act.end()
  }

  /// - Bob has grafted Alice's list, and she edits one node; then the server shows him its state of before that
  /// => the branch freezes, and what the server still has of it is returned
  /// - He accepts the server's state
  /// => he can read and change the branch again
  @Test func frozenGraft_isTakenOut_asFarAsItVerifies() async throws {
    try await TestWorld.run { world in
      let invited = try await GraftTests.Invited(world)
      let (alice, bob, hostile) = (invited.alice, invited.bob, HostileServer(world.server))
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await world.settle(bob, alice)
      let tablet = try await TestDevice("tablet", server: world.server, clock: world.clock, through: hostile)
      try await tablet.login(words: try #require(world.words(of: "bob")))
      try await TestWorld.settle([tablet])
      let yesterday = try await world.server.fork(try await world.server.backup(), clock: world.clock)
      try await alice.edit("/Groceries/D", "oat milk")
      try await alice.sync()
      try await tablet.pull()
      try hostile.lead("tablet", to: yesterday)
      await #expect(throws: ZDCSecurityError.self) { try await tablet.pull() }
      #expect(Array(try await DeviceState(of: tablet).frozen.values) == ["zoneRollback"])
      let paths = ["/Groceries", "/Groceries/D", "/Groceries/E", "/Groceries/G"]
      let found = try await Self.takeOut(paths, of: tablet)
      #expect(found == [paths[0]: "the list", paths[1]: "blobGone", paths[2]: "eggs", paths[3]: "bread"])
      // The server's state is accepted, and the server has the newer one again.
      let user = try tablet.localUserID
      for zone in try await tablet.syncManager.frozenZones(localUserID: user) {
        try await tablet.syncManager.acceptServerState(ofZone: zone.zone, localUserID: user)
      }
      try await tablet.pull()
      try hostile.lead("tablet", to: world.server)
      try await world.settle(tablet, alice, bob)
      #expect(try await tablet.branch("/Groceries") == alice.branch("/Groceries"))
      #expect(try await DeviceState(of: tablet).frozen.isEmpty)
      try await tablet.edit("/Groceries/E", "tablet's")
      try await world.settle(tablet, alice)
      #expect(try await alice.content(of: "/Groceries/E")?.data == Data("tablet's".utf8))
      try await tablet.close()
      try await yesterday.stop()
    }
  }

  private static func blob(_ name: String, _ act: HostileAct) throws -> BlobID? {
    try act.zone.node(name).record.fields.content?.blobID
  }

  /// Returns the text or the error's code by path, for every node with content in the cloud.
  private static func takeOut(_ act: HostileAct) async throws -> [String: String] {
    let paths = [
      "/kept", "/folder/inner", "/renamed", "/small", "/left", "/right", "/new", "/film",
    ]
    return try await takeOut(paths, of: act.victim)
  }

  private static func takeOut(_ paths: [String], of device: TestDevice) async throws -> [String: String] {
    var (nodes, found): ([ZDCNode], [String: String]) = ([], [:])
    for path in paths { nodes.append(try await device.node(path)) }
    guard let manager = try device.zdc.downloadManager else { throw TestFailure("locked") }
    for try await download in manager.downloadContents(of: nodes) {
      let index = nodes.firstIndex { $0.uuid == download.node.uuid } ?? 0
      found[paths[index]] = text(of: download)
    }
    return found
  }

  private static func text(of download: ZDCContentDownload) -> String {
    do {
      switch try download.content.get() {
      case .memory(let data, _, _): return String(decoding: data, as: UTF8.self)
      case .file(let file):
        defer { try? FileManager.default.removeItem(at: file.fileURL) }
        let data = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
        return data.count > 1_000 ? "film" : String(decoding: data, as: UTF8.self)
      }
    } catch { return HostileScenario.code(of: error) }
  }
}
