import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Commits of another member in a zone: their signatures are checked with the keys of that member's identity chain
/// (PROTOCOL 3.2, 3.7). The access list and the commits are made by hand, so that tests choose who signs with which key.
struct MemberTests {
  private struct Stage: Sendable {
    let hostile: HostileServer
    /// The owner's device.
    let device: TestDevice
    let owner: RogueWriter
    var member: RogueWriter

    init(_ world: TestWorld) async throws {
      hostile = HostileServer(world.server)
      device = try await TestDevice("A", server: world.server, clock: world.clock, through: hostile)
      let words = try await device.createAccount()
      try await device.create("/mine", "by the owner")
      try await device.sync()
      owner = try await Self.writer(device, words, world)
      let other = try await TestDevice("M", server: world.server, clock: world.clock)
      member = try await Self.writer(other, try await other.createAccount(), world)
      try await other.close()
      try await admit()
    }

    private static func writer(_ device: TestDevice, _ words: [String], _ world: TestWorld) async throws -> RogueWriter
    {
      let user = try #require(UserID(text: try device.localUserID))
      return try await RogueWriter(words: words, user: user, server: world.server)
    }

    /// Adds the member to the access list of the owner's home.
    private func admit() async throws {
      let home = try await owner.home()
      let link = try await member.chain()[0]
      let grant = try GrantSealer(zone: home.zone, zoneKeyGen: 1, key: home.root.key)
        .seal(for: member.keys.userID, encGen: 1, encPub: link.encPub)
      let list = try home.nextACL { fields in
        fields.entries.append(
          ZoneACL.Entry(
            user: member.keys.userID, permissions: [.read, .write], encGen: 1, wrapKind: .nodeKey,
            wrapHash: grant.wrapHash))
        fields.entries.sort { $0.user < $1.user }
      }
      try await owner.push(try home.commit(bringing: list), acl: list, grants: [grant])
    }

    /// Creates a node as the member.
    func write(_ name: String, key: SigningKey? = nil, generation: UInt32 = 1) async throws {
      let home = try await owner.home()
      var draft = try home.draft(new: name)
      (draft.writer, draft.writerGen) = (member.keys.userID, generation)
      let record = try RecordSealer.seal(draft)
      let commit = try home.commit(
        [.put(ZoneOperation.Put(record))], signedBy: key ?? member.keys.signingKey
      ) {
        ($0.writer, $0.writerGen) = (member.keys.userID, generation)
      }
      try await member.push(commit, [record])
    }

    /// Announces the member's next signature key in their chain, and returns the key.
    func rotateKey() async throws -> SigningKey {
      let (link, keyring, signing) = try await member.nextSigningKey()
      try await member.append(link, keyring: keyring)
      return signing
    }

    /// The number of requests for other users' chains.
    var chainRequests: Int { hostile.requests.filter { $0.route.pattern == Routes.chains }.count }

    /// Makes the server show these links in place of the member's.
    func show(_ links: [IdentityLink]) {
      hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.chains else { return false }
          answer.items = links.map { ServedItem($0) }
          return true
        })
    }

    func names() async throws -> String { try await device.tree(versions: false) }
  }

  /// => each chain is fetched once, also across a launch; a new key is fetched when a commit names it
  @Test func chainsOfMembers_areFetchedOnce() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      try await stage.write("first")
      try await stage.device.pull()
      #expect(try await stage.names().contains("/first"))
      #expect(stage.chainRequests == 1)
      try await stage.write("second")
      try await stage.device.pull()
      try await stage.device.relaunch()
      try await stage.write("third")
      try await stage.device.pull()
      #expect(stage.chainRequests == 1)
      let next = try await stage.rotateKey()
      try await stage.write("fourth", key: next, generation: 2)
      try await stage.device.pull()
      #expect(stage.chainRequests == 2)
      for name in ["second", "third", "fourth"] { #expect(try await stage.names().contains("/\(name)")) }
      try await stage.device.close()
    }
  }

  /// - The server shows nothing of the member's chain, or nothing after the pinned links
  /// => nothing of the commit is applied, the tree is not frozen, and the next pull delivers it
  @Test(arguments: [true, false]) func withheldChain_isAskedForAgain(isPinned: Bool) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      if isPinned {
        try await stage.write("first")
        try await stage.device.pull()
      }
      let next = try await stage.rotateKey()
      try await stage.write("later", key: next, generation: 2)
      stage.show([])
      await #expect(throws: ZDCSecurityError.self) { try await stage.device.pull() }
      #expect(!(try await stage.names().contains("/later")))
      stage.hostile.stopTampering()
      try await stage.device.pull()
      #expect(try await stage.names().contains("/later"))
      try await stage.device.close()
    }
  }

  /// A server can make up any number of members in a page.
  @Test func chainsOfOnePage_areBounded() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let device = try await TestDevice("A", server: world.server, clock: world.clock, through: hostile)
      _ = try await device.createAccount()
      try await device.sync()
      let session = try await device.syncManager.engine(for: try device.localUserID).session
      hostile.forgetRequests()
      let signers = Set(
        (0..<Limits.aclEntries + 10).compactMap { _ in UserID((0..<32).map { _ in .random(in: .min ... .max) }) }
          .map { Signer(user: $0, generation: 1) })
      let (keys, refused) = try await session.identities.keys(of: signers, own: session.keys)
      #expect(keys.missing(of: signers) == signers && refused.isEmpty)
      #expect(hostile.requests.map(\.body.count) == [36 * Limits.aclEntries])
      try await device.close()
    }
  }

  /// - The server shows a link that the member did not sign, for a pinned chain and for an unknown one
  /// => a commit that is signed with its key is refused, and the link is reported
  @Test(arguments: [true, false]) func forgedChain_isRefused(isPinned: Bool) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      if isPinned {
        try await stage.write("first")
        try await stage.device.pull()
      }
      let genesis = try await stage.member.chain()[0]
      let next = try await stage.rotateKey()
      try await stage.write("later", key: next, generation: 2)
      let honest = try await stage.member.chain()[1]
      var forged = honest.bytes
      forged[forged.count - 1] ^= 1
      let link = try IdentityLink(forged)
      stage.show(isPinned ? [link] : [genesis, link])
      await #expect(throws: ZDCSecurityError.self) { try await stage.device.pull() }
      let state = try await DeviceState(of: stage.device)
      #expect(state.events.map(\.code).contains("identityChainInvalid"))
      #expect(!(try await stage.names().contains("/later")))
      stage.hostile.stopTampering()
      try await stage.device.pull()
      #expect(try await stage.names().contains("/later"))
      try await stage.device.close()
    }
  }
}
