import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCSync
@testable import ZeroDarkCloud

/// A log that is fetched in order to replace the pinned one: until then, only what members have signed is kept.
struct LogChainTests {
  private static func some<Role>(_ byte: UInt8) -> Bytes32<Role> {
    Bytes32([UInt8](repeating: byte, count: 32)) ?? .zero
  }

  private static func commit(
    _ seq: UInt64, after prev: CommitHash, _ zone: ZoneID, by rogue: RogueWriter
  ) throws
    -> ZoneCommit
  {
    let put = ZoneOperation.Put(
      node: .random(), parent: zone.root, record: some(1), keyGen: 1, parentKeyGen: 1)
    let fields = ZoneCommit.Fields(
      zone: zone, seq: seq, prev: prev, aclHash: some(2), writer: rogue.keys.userID, writerGen: rogue.keys.signGen,
      timeMs: 1, operations: [.put(put)])
    return try ZoneCommit(fields) { try rogue.keys.signingKey.sign(label: "commit", message: $0) }
  }

  private static func page(_ commits: [ZoneCommit], junk: Int = 0) throws -> PageContents {
    var page = ZDCProtocol.Bundle.Writer()
    for commit in commits { page.append(commit: commit.bytes, receivedMs: 7) }
    for _ in 0..<junk { page.append(content: [UInt8](repeating: 1, count: 1_000), blob: .random()) }
    return try PageContents(page.bytes)
  }

  private static func rogue(_ world: TestWorld) async throws -> RogueWriter {
    let a = try await world.device("A")
    let user = try #require(UserID(text: try a.localUserID))
    return try await RogueWriter(words: try #require(world.words()), user: user, server: world.server)
  }

  /// => commits are kept as received, and everything that they do not name is dropped
  @Test func unsignedObjects_areDropped() async throws {
    try await TestWorld.run { world in
      let rogue = try await Self.rogue(world)
      let zone = ZoneID(trunkOf: .derive(owner: rogue.keys.userID, trunk: .home, appTreeID: TestDevice.treeID))
      let first = try Self.commit(0, after: ZoneCommit.genesisPrev(zone: zone), zone, by: rogue)
      let second = try Self.commit(1, after: first.hash, zone, by: rogue)
      var chain = LogChain(zone: zone)
      let page = try Self.page([first, second], junk: 50)
      let kept = try PageContents(try chain.verified(page, writers: WriterKeys(own: rogue.keys)))
      #expect(kept.commits.map(\.commit.hash) == [first.hash, second.hash])
      #expect(kept.commits.allSatisfy { $0.receivedMs == 7 } && kept.contents.isEmpty)
      #expect(chain.seq == 1)
    }
  }

  /// => a fabricated log ends at its first commit that no member signed, or that is out of order
  @Test func aLogThatIsMadeUp_ends() async throws {
    try await TestWorld.run { world in
      let rogue = try await Self.rogue(world)
      let zone = ZoneID(trunkOf: .derive(owner: rogue.keys.userID, trunk: .home, appTreeID: TestDevice.treeID))
      let first = try Self.commit(0, after: ZoneCommit.genesisPrev(zone: zone), zone, by: rogue)
      let gap = try Self.commit(2, after: first.hash, zone, by: rogue)
      let fork = try Self.commit(1, after: Self.some(3), zone, by: rogue)
      let second = try Self.commit(1, after: first.hash, zone, by: rogue)
      let unsigned = ZoneCommit(second.fields) { _ in [UInt8](repeating: 1, count: 64) }
      for (next, code) in [
        (gap, ZDCSecurityError.Code.commitChainBroken), (fork, .commitChainBroken), (first, .commitChainBroken),
        (unsigned, .signatureInvalid),
      ] {
        var chain = LogChain(zone: zone)
        let writers = WriterKeys(own: rogue.keys)
        _ = try chain.verified(try Self.page([first]), writers: writers)
        let error = #expect(throws: ZDCSecurityError.self) {
          try chain.verified(try Self.page([next]), writers: writers)
        }
        #expect(error?.code == code)
      }
    }
  }
}
