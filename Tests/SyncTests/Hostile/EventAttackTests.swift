import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Event streams give hints only (SECURITY 2.D, D10): they make the device read the log, and do nothing else.
struct EventAttackTests {
  enum Hint: String, Sendable, CaseIterable {
    case higherHead, lowerHead, otherHash, foreignZone, noZones
  }

  private static func event(_ hint: Hint, _ honest: [ZoneStatus]) throws -> [String] {
    let invented = CommitHash(labelledHash: "commit", [])
    let zones = honest.map { status -> ZoneStatus in
      switch hint {
      case .higherHead: ZoneStatus(zone: status.zone, seq: status.seq + 1_000, head: invented)
      case .lowerHead: ZoneStatus(zone: status.zone, seq: 0, head: status.head)
      case .otherHash: ZoneStatus(zone: status.zone, seq: status.seq, head: invented)
      case .foreignZone, .noZones:
        ZoneStatus(
          zone: ZoneID(tree: TreeID(reinterpreting: invented), root: .random()), seq: 1, head: invented
        )
      }
    }
    if hint == .noZones { return [try Self.text("zones", ZoneList(zones: []))] }
    return try zones.map { try Self.text("head", HeadEvent(status: $0, page: nil)) }
  }

  private static func text(_ name: String, _ value: some Encodable) throws -> String {
    "event: \(name)\ndata: \(String(decoding: try JSONEncoder().encode(value), as: UTF8.self))\n\n"
  }

  @Test(arguments: Hint.allCases) func hintThatIsNotTrue_changesNothing(_ hint: Hint) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await world.device("A")
      try await a.create("/before", "1")
      try await a.sync()
      let b = try await TestDevice("B", server: world.server, clock: world.clock, through: hostile)
      try await b.login(words: world.words() ?? [])
      try await TestWorld.settle([b])
      let invented = try Self.event(hint, try await b.api.zones(since: nil).zones)
      try await b.whileRunning {
        hostile.tell(.events { invented + $0 })
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
      }
      #expect(hostile.liesTold > 0)
      hostile.stopTampering()
      try await TestWorld.settle([a, b])
      #expect(try await b.tree() == (try await a.tree()))
      #expect(try await b.securityErrors() == [])
      try await b.close()
    }
  }

  /// - an event has a commit that was not signed with the account's keys
  /// => it proves nothing: the device requests the log, and the honest one counts
  @Test func forgedCommitInAnEvent_isNotBelieved() async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await world.device("A")
      try await a.create("/before", "1")
      try await a.sync()
      let words = world.words() ?? []
      let user = try #require(UserID(text: try a.localUserID))
      let zone = try await RogueWriter(words: words, user: user, server: world.server).home()
      let record = try RecordSealer.seal(try zone.draft(new: "planted"))
      let forged = try zone.commit([.put(ZoneOperation.Put(record))], signedBy: .random())
      var page = ZDCProtocol.Bundle.Writer()
      page.append(commit: forged.bytes)
      page.append(record: record.bytes)
      let status = ZoneStatus(zone: zone.zone, seq: forged.fields.seq, head: forged.hash)
      let event = try Self.text("head", HeadEvent(status: status, page: WireBytes(page.bytes)))

      let b = try await TestDevice("B", server: world.server, clock: world.clock, through: hostile)
      try await b.login(words: words)
      try await TestWorld.settle([b])
      try await b.whileRunning {
        hostile.tell(.events { [event] + $0 }, times: 1)
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
      }
      #expect(hostile.liesTold == 1)
      #expect(try await b.securityErrors() == [])
      hostile.stopTampering()
      try await TestWorld.settle([a, b])
      #expect(try await b.tree() == (try await a.tree()))
      try await b.close()
    }
  }
}
