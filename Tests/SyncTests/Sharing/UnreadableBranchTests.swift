import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Shared branches with nodes that a member has made unreadable, or that an older version cannot write.
struct UnreadableBranchTests {
  typealias People = ListChangeTests.People

  enum Fault: CaseIterable, Sendable {
    /// The newest version has other content, and no device can open it.
    case foreignContent
    /// The newest version has a field that this version of the framework does not know.
    case unknownField
  }

  /// A list of Alice's with a folder, that Bob and Carol may write.
  private struct Stage {
    let people: People
    let branch: ZoneID

    init(_ world: TestWorld) async throws {
      people = try await People(world)
      let alice = people.alice
      for path in ["/list", "/list/folder", "/list/folder/note", "/list/other"] { try await alice.create(path, path) }
      try await alice.sync()
      for member in [people.bob, people.carol] { try await alice.share("/list", with: member) }
      try await alice.sync()
      let root = try await alice.cloudID("/list")
      branch = ZoneID(
        tree: .derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID),
        root: try #require(NodeID(text: root)))
      for member in [people.bob, people.carol] { try await member.accept(root, of: alice) }
      // All nodes have been written since the split, so that their keys are current.
      for path in ["/list", "/list/folder", "/list/folder/note", "/list/other"] {
        try await alice.edit(path, "new " + path)
      }
      try await alice.sync()
    }

    /// Bob puts a faulty version of the list's root, or of the folder in it.
    func spoil(_ name: String, _ fault: Fault) async throws {
      let rogue = try await people.rogue("bob", people.bob)
      let zone = try await rogue.zone(branch)
      var draft = try zone.draft(next: name)
      if name.isEmpty {
        (draft.parent, draft.parentLink, draft.isZoneRoot, draft.secrets.name) = (.zero, .none, true, [])
      }
      switch fault {
      case .unknownField:
        draft.secrets.unknownExtras = [RecordPrivate.UnknownExtra(type: 200, value: [1])]
        let record = try RecordSealer.seal(draft)
        try await rogue.push(try zone.commit(putting: record), [record])
      case .foreignContent:
        let sealed = try ContentSealer.sealSmall(data: Array("garbage".utf8))
        draft.content = sealed.content(dataVersion: 9)
        let other = try zone.node("other").record.fields.sealedPrivate
        let record = RogueZone.record(try RecordSealer.seal(draft)) { $0.sealedPrivate = other }
        let blob = try #require(draft.content?.blobID)
        try await rogue.push(try zone.commit(putting: record), [record], contents: [(blob, sealed.bytes)])
      }
    }

    func list(_ device: TestDevice) async throws -> ZoneACL.Fields? {
      try await device.database.read { [branch] transaction in
        try transaction.zones.zone(localUser: 1, branch)?.head?.acl.fields
      }
    }
  }

  /// - Bob makes the root of a shared branch unreadable
  /// => Alice can remove him, and all members can write there afterwards
  @Test(arguments: Fault.allCases) func aMemberCannotPreventTheirRemoval(fault: Fault) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob, carol) = (stage.people.alice, stage.people.bob, stage.people.carol)
      let codes = fault == .unknownField ? [] : ["recordAuthFailed"]
      for device in [alice, carol] { world.expectsSecurityErrors(codes, on: device) }
      try await carol.sync()
      try await stage.spoil("", fault)
      for device in [alice, carol] { try await device.sync() }
      try await alice.unshare("/list", with: bob)
      try await alice.create("/list/later", "later")
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await alice.members(bob, carol, of: "/list") == ["carol": "rw"])
      #expect(try await stage.list(alice)?.zoneKeyGen == 3)
      try await carol.sync()
      let top = "detached:/" + stage.branch.root.text
      try await carol.create(top + "/carols", "carol's")
      try await carol.sync()
      try await alice.sync()
      #expect(try await alice.branch("/list")?.contains("/carols") == true)
      guard fault == .foreignContent else { return }
      try await alice.edit("/list", "mended")
      for device in [alice, carol] { try await device.sync() }
      for device in [alice, carol] { try await device.download() }
      #expect(try await carol.content(of: top)?.data == Data("mended".utf8))
      #expect(try await alice.content(of: "/list/carols")?.data == Data("carol's".utf8))
    }
  }

  /// - Bob puts content into the root of a shared branch that has a length which no sealed content has
  /// => Alice can remove him, and the rest of her queue is sent
  @Test func contentOfAnImpossibleLength_preventsNoRemoval() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.people.alice, stage.people.bob)
      // The rotated root names that content as well.
      world.skipsComparison()
      world.expectsSecurityErrors(["contentHeaderInvalid"], on: alice)
      let rogue = try await stage.people.rogue("bob", bob)
      let zone = try await rogue.zone(stage.branch)
      var draft = try zone.draft(next: "")
      (draft.parent, draft.parentLink, draft.isZoneRoot, draft.secrets.name) = (.zero, .none, true, [])
      let (blob, bytes) = (BlobID.random(), [UInt8](repeating: 1, count: 56 + 16_400 + 3))
      draft.content = NodeRecord.Content(
        dataVersion: 9, blobID: blob, cipherLength: UInt64(bytes.count),
        contentRoot: ContentRoot(reinterpreting: MerkleTree.leafHash(bytes)))
      let record = try RecordSealer.seal(draft)
      try await rogue.push(try zone.commit(putting: record), [record], contents: [(blob, bytes)])
      try await alice.sync()
      try await alice.unshare("/list", with: bob)
      try await alice.create("/list/later", "later")
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await stage.list(alice)?.entry(for: try bob.userID) == nil)
    }
  }

  /// - Bob makes a folder in a shared branch unreadable, and Alice removes him, which makes the folder stale
  /// => changes below the folder are sent
  @Test(arguments: Fault.allCases) func aMemberCannotPreventChangesBelowAFolder(fault: Fault) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob, carol) = (stage.people.alice, stage.people.bob, stage.people.carol)
      // A new device meets the error as well.
      if fault == .unknownField { world.skipsComparison() }
      let code = fault == .unknownField ? "unsupportedVersion" : "recordAuthFailed"
      world.expectsSecurityErrors([code], on: alice)
      world.expectsSecurityErrors(fault == .unknownField ? [code, code] : [code], on: carol)
      try await carol.sync()
      try await stage.spoil("folder", fault)
      for device in [alice, carol] { try await device.sync() }
      try await alice.unshare("/list", with: bob)
      try await alice.sync()
      try await alice.edit("/list/folder/note", "edited")
      try await alice.create("/list/folder/new", "new")
      for device in [alice, carol] { try await device.sync() }
      #expect(try await alice.queueCount() == 0)
      if fault == .foreignContent {
        try await alice.edit("/list/folder", "mended")
        for device in [alice, carol] { try await device.sync() }
      }
      try await carol.download()
      let top = "detached:/" + stage.branch.root.text
      #expect(try await carol.content(of: top + "/folder/note")?.data == Data("edited".utf8))
      #expect(try await carol.content(of: top + "/folder/new")?.data == Data("new".utf8))
    }
  }

  /// - Alice removes a member, and the newest version of the root has not been read yet, because the server fails to send it
  /// => the removal waits, and the rest of the queue is sent
  @Test func aRemovalThatHasToWait_holdsUpNothing() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let (alice, bob) = (stage.people.alice, stage.people.bob)
      try await alice.unshare("/list", with: bob)
      try await alice.create("/list/later", "later")
      try await alice.database.write { [stage] transaction in
        let zone = try #require(try transaction.zones.zone(localUser: 1, stage.branch))
        try transaction.leaves(zone: zone.id).set(.pending, zone.zone.root)
      }
      alice.network.fail(.answer(status: 500, code: "internal"), "POST", Routes.records, times: 100)
      await #expect(throws: (any Error).self) { try await alice.push() }
      for _ in 0..<2 { try await alice.push() }
      alice.network.restoreNetwork()
      #expect(try await alice.queue().split(separator: "\n").count == 1)
      #expect(try await alice.queue().contains("changeList"))
      world.clock.advance(by: .seconds(600))
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try await stage.list(alice)?.entry(for: try bob.userID) == nil)
    }
  }
}
