import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileScenario {
  /// Whole servers (restored, forked, silent), their answers to a push, and sizes.
  static let server: [HostileScenario] = whole + pushes + sizes

  private static let whole: [HostileScenario] = [
    HostileScenario(
      "C6", "29", story: "the server of yesterday", error: "zoneRollback", .freezes, from: .current,
      mend: { try $0.hostile.lead("B", to: $0.fork) }
    ) { act in
      let yesterday = try await act.stage.server.fork(act.stage.early, clock: ManualClock())
      act.others.add(yesterday)
      try act.hostile.lead("B", to: yesterday)
    },
    HostileScenario(
      "C7", "30", story: "another branch of the same length", error: "zoneForkDetected", .freezes, from: .current,
      reveals: ["/other branch"]
    ) { act in
      try await branch(act, commits: 1)
    },
    HostileScenario(
      "C7", "30", story: "a longer branch", error: "zoneForkDetected", .freezes, from: .current,
      reveals: ["/other branch"]
    ) { act in try await branch(act, commits: 3) },
  ]

  /// Syncs the victim with one branch, and leads it to the other, to which the account's other device has written.
  private static func branch(_ act: HostileAct, commits: Int) async throws {
    let other = try await act.stage.server.fork(act.stage.late, clock: ManualClock())
    act.others.add(other)
    let rogue = try await RogueWriter(
      words: act.stage.words, user: act.stage.user, server: other, origin: act.stage.server.url.absoluteString)
    var last = try act.zone.head
    for number in 0..<commits {
      let record = try RecordSealer.seal(try act.zone.draft(new: "other branch \(number)"))
      last = try act.zone.commit(putting: record, after: last)
      try await rogue.push(last, [record])
    }
    let mine = try await act.rogue()
    let name = "renamed"
    let record = try RecordSealer.seal(try act.zone.draft(next: name))
    try await mine.push(try act.zone.commit(putting: record), [record])
    try await act.victim.pull()
    try act.hostile.lead("B", to: other)
  }

  private static let pushes: [HostileScenario] = [
    HostileScenario(
      "47", story: "409 for ever, with nothing new", error: "headMismatch", .fails, from: .current, by: .push
    ) { act in
      let head = try act.zone.head
      act.tell(conflict(head: head, body: []))
    },
    HostileScenario(
      "25", "47", story: "409 with a forged commit", error: "headMismatch", .fails, from: .current, by: .push
    ) { act in
      let record = try RecordSealer.seal(try act.zone.draft(new: "planted"))
      let forged = try act.zone.commit(
        [.put(ZoneOperation.Put(record))], signedBy: act.stage.stranger.keys.signingKey)
      var bundle = ZDCProtocol.Bundle.Writer()
      bundle.append(commit: forged.bytes)
      bundle.append(record: record.bytes)
      act.tell(conflict(head: forged, body: bundle.bytes))
    },
    HostileScenario(
      "48", story: "a push is acknowledged and dropped", error: "ownCommitMissing", .fails, from: .current, by: .sync
    ) { act in
      act.tell(
        .fabricate("POST", Routes.commits) { route, request in
          guard let commit = firstCommit(of: request) else { return nil }
          let status = ZoneStatus(
            zone: commit.fields.zone, seq: commit.fields.seq, head: commit.hash)
          let answer = CommitResponse(receivedMs: 1, zones: [status])
          guard let body = try? JSONEncoder().encode(answer) else { return nil }
          return ServedAnswer(
            to: route, request: request, status: 200, headers: ["content-type": "application/json"], body: Array(body))
        }, times: 1)
      // The next sync detects it.
      _ = try await act.victim.sync()
    },
  ]

  private static func conflict(head: ZoneCommit, body: [UInt8]) -> Lie {
    .fabricate("POST", Routes.commits) { route, request in
      ServedAnswer(
        to: route, request: request, status: 409,
        headers: [
          "content-type": ZDCProtocol.Bundle.mediaType,
          WireHeaders.zoneHead: "\(head.fields.seq):\(head.hash.text)",
        ], body: body)
    }
  }

  private static func firstCommit(of request: [UInt8]) -> ZoneCommit? {
    var reader = ZDCProtocol.Bundle.Reader(request)
    while let item = try? reader.next() {
      if case .commit(_, let commit) = item { return commit }
    }
    return nil
  }

  private static func login(
    _ story: String, error: String, _ lie: Lie
  ) -> HostileScenario {
    HostileScenario("37", "D12", story: story, error: error, .fails, from: .fresh, fromLogin: true) { $0.tell(lie) }
  }

  private static let slice = [UInt8](repeating: UInt8(ascii: "["), count: 65_536)

  private static let sizes: [HostileScenario] = [
    login("JSON of depth 100,000", error: "badAnswer", .body("POST", Routes.login) { $0 = nested }),
    login(
      "a name twice in one object", error: "badAnswer",
      .body("POST", Routes.login) { $0 = $0.dropLast() + Array(#","userID":"x"}"#.utf8) }),
    login(
      "a name twice, once with an escape", error: "badAnswer",
      .body("POST", Routes.login) { $0 = $0.dropLast() + Array(#","us\u0065rID":"x"}"#.utf8) }),
    login("JSON that is none", error: "badAnswer", .body("POST", Routes.login) { $0 = Array("{".utf8) }),
    login("JSON without an end", error: "limitExceeded", .endless("POST", Routes.login, of: slice)),
    login("an error without an end", error: "limitExceeded", endlessError),
    login("a chain without an end", error: "limitExceeded", .endless("GET", Routes.chain, of: slice)),
    login("2^63 bytes of JSON announced", error: "", .announce(1 << 63, "POST", Routes.login)),
    HostileScenario("37", "B12", story: "a page of commits without an end", error: "limitExceeded", .fails) {
      $0.tell(.endless("GET", Routes.zoneCommits, of: slice))
    },
    HostileScenario("37", "B12", story: "records without an end", error: "limitExceeded", .fails) {
      $0.tell(.withhold(.record), .endless("POST", Routes.records, of: slice))
    },
    HostileScenario("37", "B12", story: "leaf hashes without an end", error: "limitExceeded", .fails, by: .export) {
      $0.tell(.endless("GET", Routes.leafHashes, of: slice))
    },
    HostileScenario("37", "B12", story: "a proof without an end", error: "limitExceeded", .fails, by: .meta) {
      $0.tell(.endless("GET", Routes.leafProof, of: slice))
    },
    HostileScenario(
      "37", "B12", story: "small contents without an end", error: "limitExceeded", .fails, by: .download,
      accusesNode: false
    ) {
      $0.tell(.endless("POST", Routes.contents, of: slice))
    },
    HostileScenario("37", story: "2^63 bytes of commits announced", error: "", .passes) {
      $0.tell(.announce(1 << 63, "GET", Routes.zoneCommits))
    },
  ]

  private static let nested = [UInt8](repeating: UInt8(ascii: "["), count: 100_000)

  private static let endlessError = Lie { answer in
    guard answer.route.pattern == Routes.login else { return false }
    answer.status = 500
    answer.endlessly = slice
    return true
  }
}
