import Testing
import ZDCCrypto
import ZDCProtocol

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZeroDarkCloud

/// The client's side of the routes for zones of other users.
@Suite struct MembershipAPITests {
  private struct User {
    let api: ServerAPI
    let keys: UserKeys

    init(_ device: NetworkDevice) async throws {
      let (user, words) = try await device.users.createAccount()
      api = try await device.api(user)
      let id = try ZDCLocalUserManager.userID(user.uuid)
      keys = try UserKeys(
        chain: try await api.chain(of: id), keyringBlob: try await api.keyring(),
        accessKey: try AccessKey(words: words),
        expected: id)
    }

    /// Adds a reader to one of the user's zones, with a wrap that does not open.
    func share(_ zone: ZoneID, with user: UserID, encGen: UInt32 = 1) async throws -> PushAnswer {
      let page = try PageContents(try await api.commitPage(zone, after: nil, withRecords: false).body)
      let (acl, head) = (try #require(page.lists.values.first), try #require(page.commits.last?.commit))
      let grant = Grant(zone: zone, zoneKeyGen: 1, user: user, wrap: [UInt8](repeating: 7, count: 1_168))
      var fields = acl.fields
      (fields.version, fields.prev) = (fields.version + 1, acl.hash)
      fields.entries.append(
        ZoneACL.Entry(
          user: user, permissions: [.read], encGen: encGen, wrapKind: .nodeKey, wrapHash: grant.wrapHash))
      fields.entries.sort { $0.user < $1.user }
      let list = try ZoneACL(fields) { try keys.signingKey.sign(label: "acl", message: $0) }
      let commit = try ZoneCommit(
        ZoneCommit.Fields(
          zone: zone, seq: head.fields.seq + 1, prev: head.hash, aclHash: list.hash, writer: keys.userID,
          writerGen: keys.signGen, timeMs: 1, operations: [.acl(version: fields.version, hash: list.hash)])
      ) { try keys.signingKey.sign(label: "commit", message: $0) }
      var bundle = ZDCProtocol.Bundle.Writer()
      bundle.append(acl: list.bytes)
      bundle.append(grant: grant.bytes)
      bundle.append(commit: commit.bytes)
      return try await api.push(bundle.bytes)
    }
  }

  private static func run(_ body: (_ owner: User, _ member: User, _ zone: ZoneID) async throws -> Void) async throws {
    try await NetworkWorld.run { world in
      let owner = try await User(try world.device("owner"))
      let member = try await User(try world.device("member"))
      try await body(owner, member, try #require(try await owner.api.zones(since: nil).zones.first).zone)
    }
  }

  @Test func aZoneIsOffered_accepted_andForgotten() async throws {
    try await Self.run { owner, member, zone in
      await #expect(throws: ServerError.self) { try await member.api.acceptZone(zone) }
      _ = try await owner.share(zone, with: member.keys.userID)
      #expect(try await member.api.offeredZones().zones.map(\.zone) == [zone])
      let status = try await member.api.acceptZone(zone)
      #expect((status.zone, status.seq) == (zone, 1))
      #expect(try await member.api.zones(since: nil).zones.last == status)
      #expect(try await member.api.offeredZones().zones.isEmpty)
      try await member.api.forgetZone(zone)
      #expect(try await member.api.zones(since: nil).zones.count == 4)
    }
  }

  @Test func logsComeAsPagesAndAsAStream() async throws {
    try await Self.run { owner, member, zone in
      _ = try await owner.share(zone, with: member.keys.userID)
      let own = try #require(try await member.api.zones(since: nil).zones.first).zone
      let hidden = try #require(try await owner.api.zones(since: nil).zones.last { $0.zone != zone }).zone
      let positions = [
        ZonePosition(zone: hidden, after: nil), ZonePosition(zone: zone, after: 0), ZonePosition(zone: own, after: nil),
      ]
      let pages = try await member.api.commitPages(positions, withRecords: true)
      #expect(pages.map { $0.log?.seq } == [nil, 1, 0])
      let alone = try await member.api.commitPage(zone, after: 0, withRecords: true, withEdits: true)
      #expect(pages[1].log.map { Array($0.body) } == alone.body)
      let (head, body) = try await member.api.log(zone, after: nil)
      #expect(head.seq == 1)
      let whole = try await member.api.commitPage(zone, after: nil, withRecords: false)
      #expect(try await body.collect(upTo: 1 << 20) == whole.body)
      await #expect(throws: ServerError.self) { _ = try await member.api.log(hidden, after: nil) }
    }
  }

  @Test func aStaleKeyNamesTheUser() async throws {
    try await Self.run { owner, member, zone in
      let error = await #expect(throws: ServerError.self) {
        _ = try await owner.share(zone, with: member.keys.userID, encGen: 2)
      }
      #expect((error?.security, error?.user) == (.recipientKeyStale, member.keys.userID))
    }
  }
}
