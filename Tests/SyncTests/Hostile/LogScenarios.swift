import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileScenario {
  /// The zone's log: order, signatures, rights, shape.
  static let log: [HostileScenario] = order + signatures + shape + forms + numbers

  private static let order: [HostileScenario] = [
    HostileScenario("C8", "31", story: "a commit is left out", error: "commitChainBroken", .fails) { act in
      act.tell(.rewrite(.commit) { $0.removeFirst() })
    },
    HostileScenario("31", story: "a commit in the middle is left out", error: "commitChainBroken", .fails) { act in
      act.tell(.rewrite(.commit) { if $0.count > 3 { $0.remove(at: 2) } })
    },
    HostileScenario("31", story: "two commits change places", error: "commitChainBroken", .fails) { act in
      act.tell(.rewrite(.commit) { $0.swapAt(0, 1) })
    },
    HostileScenario("C8", story: "all commits are left out, the head is named", error: "commitChainBroken", .fails) {
      act in act.tell(.withhold(.commit))
    },
    HostileScenario("C8", story: "the newest commits are not shown", error: "", .passes) { act in
      let commits = act.zone.commits
      let shown = commits[commits.count - 3]
      act.tell(
        .rewrite(.commit) { $0.removeLast(2) }, .head(act.zone.zone, seq: shown.fields.seq, hash: shown.hash))
    },
    HostileScenario("C8", story: "a commit comes twice", error: "", .passes) { act in
      act.tell(.rewrite(.commit) { $0.insert($0[0], at: 1) })
    },
    HostileScenario("C6", "29", story: "a lower head is named", error: "zoneRollback", .suspends) { act in
      act.tell(.head(act.zone.zone, seq: 0, hash: act.zone.commits[0].hash))
    },
    HostileScenario(
      "C7", "30", story: "another commit stands at the pinned number", error: "zoneForkDetected", .suspends,
      from: .current
    ) { act in
      let head = try act.zone.head
      act.tell(.head(act.zone.zone, seq: head.fields.seq, hash: act.zone.commits[0].hash))
    },
    HostileScenario(
      "C7", "30", story: "a commit continues another branch", error: "zoneForkDetected", .freezes, from: .current
    ) { act in
      let commits = act.zone.commits
      let other = try act.zone.commit(
        [.put(ZoneOperation.Put(try RecordSealer.seal(try act.zone.draft(new: "branch"))))],
        after: commits[commits.count - 2])
      let next = try act.zone.commit(other.fields.operations, after: other)
      act.tell(.add([ServedItem(next)], to: act.zone.zone), .head(act.zone.zone, seq: next.fields.seq, hash: next.hash))
    },
    HostileScenario(
      "C7", "30", story: "another commit stands at a number that the page has passed", error: "zoneForkDetected",
      .freezes
    ) { act in
      let commits = try act.puts(4)
      let other = try act.zone.commit(commits[3].fields.operations, after: commits[0])
      act.show(commits, and: [other])
    },
  ]

  private static let signatures: [HostileScenario] = [
    HostileScenario("C2", story: "a put's parent is edited", error: "signatureInvalid", .suspends) { act in
      act.tell(.change(.commit) { $0[$0.count - 64 - 50] ^= 1 })
    },
    HostileScenario("25", "C3", story: "a signature is not that of the commit", error: "signatureInvalid", .suspends) {
      act in act.tell(.turnBit(.commit, at: -1))
    },
    HostileScenario(
      "25", story: "a signature in the middle of many commits is wrong", error: "signatureInvalid", .suspends
    ) { act in
      var commits = try act.puts(40)
      commits[20] = ZoneCommit(commits[20].fields) { _ in [UInt8](repeating: 1, count: 64) }
      act.show(commits)
    },
    HostileScenario("25", story: "a node is put without the writer's key", error: "signatureInvalid", .suspends) {
      act in
      let record = try RecordSealer.seal(try act.zone.draft(new: "planted"))
      act.inject(
        try act.zone.commit([.put(ZoneOperation.Put(record))], signedBy: act.stage.stranger.keys.signingKey),
        records: [record])
    },
    HostileScenario(
      "25", "B6", "20", "C3", story: "a node is put by an account of the server's", error: "writerUnknown", .suspends
    ) { act in
      var draft = try act.zone.draft(new: "planted")
      draft.writer = act.stage.stranger.keys.userID
      let record = try RecordSealer.seal(draft)
      act.inject(
        try act.zone.commit([.put(ZoneOperation.Put(record))], signedBy: act.stage.stranger.keys.signingKey) {
          $0.writer = act.stage.stranger.keys.userID
        }, records: [record])
    },
    HostileScenario("25", story: "a commit names a generation that is not there", error: "writerUnknown", .suspends) {
      act in act.inject(try act.zone.commit([.retireKey(user: act.stage.user, gen: 1)]) { $0.writerGen = 7 })
    },
    HostileScenario(
      "34", "C12", story: "a generation is retired that the chain does not have (P1)", error: "writerUnknown", .freezes
    ) { act in
      act.inject(try act.zone.commit([.retireKey(user: act.stage.user, gen: .max)]))
    },
    HostileScenario(
      "34", story: "a retirement that retires nothing (P2)", error: "writerNotAuthorized", .freezes
    ) { act in
      act.inject(try act.zone.commit([.retireKey(user: act.stage.user, gen: 1)]))
    },
    HostileScenario("C3", "18", story: "another zone's commit", error: "recordBindingMismatch", .fails) { act in
      let other = try act.stage.strangerZone.head
      act.tell(.substitute(.commit, with: other.bytes))
    },
    HostileScenario("13", "A10", story: "a commit is signed under another label", error: "signatureInvalid", .suspends)
    {
      act in
      let record = try RecordSealer.seal(try act.zone.draft(new: "planted"))
      var honest = try act.zone.commit(putting: record)
      honest = try ZoneCommit(honest.fields) { try act.zone.keys.signingKey.sign(label: "login", message: $0) }
      act.inject(honest, records: [record])
    },
  ]

  private static let shape: [HostileScenario] = [
    HostileScenario("C16", story: "a folder goes below its own child", error: "treeCycle", .freezes) { act in
      var draft = try act.zone.draft(next: "folder")
      let inner = try act.zone.node("inner")
      draft.parent = inner.record.fields.node
      draft.parentLink = .keys(inner.parentKeys)
      let record = try RecordSealer.seal(draft)
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C16", story: "a path of ten thousand folders", error: "limitExceeded", .freezes) { act in
      var parent = act.zone.zone.root
      var commits: [ZoneCommit] = []
      for _ in 0..<10 {
        let operations = (0..<1_000).map { _ in
          let node = NodeID.random()
          defer { parent = node }
          return ZoneOperation.put(
            ZoneOperation.Put(
              node: node, parent: parent, record: RecordHash(labelledHash: "record", node.bytes), keyGen: 1,
              parentKeyGen: 1))
        }
        commits.append(try act.zone.commit(operations, after: commits.last))
      }
      guard let last = commits.last else { return }
      act.tell(
        .add(commits.map { ServedItem($0) }, to: act.zone.zone),
        .head(act.zone.zone, seq: last.fields.seq, hash: last.hash))
    },
    HostileScenario("C11", story: "a node is put under an old key", error: "staleKeyGeneration", .freezes) { act in
      let record = RogueZone.record(try RecordSealer.seal(try act.zone.draft(new: "stale"))) { $0.parentKeyGen = 0 }
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C2", story: "a parent that is not there", error: "objectMissing", .fails) { act in
      let record = RogueZone.record(try RecordSealer.seal(try act.zone.draft(new: "lost"))) { $0.parent = .random() }
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C18", story: "a delete with another count", error: "moveMismatch", .freezes) { act in
      let folder = try act.zone.node("folder").record
      act.inject(
        try act.zone.commit([.delete(node: folder.fields.node, record: folder.hash, liveDescendants: 0)]))
    },
    HostileScenario("C18", story: "a delete of another version", error: "recordHashMismatch", .freezes) { act in
      let folder = try act.zone.node("folder").record
      act.inject(
        try act.zone.commit([.delete(node: folder.fields.node, record: .zero, liveDescendants: 1)]))
    },
    HostileScenario("C18", story: "a split whose zone is not shown", error: "splitMismatch", .fails) { act in
      act.inject(
        try act.zone.commit([.split(node: try act.zone.node("folder").record.fields.node, genesis: .zero, count: 1)]))
    },
  ]

  /// Numbers that would leave none for an honest writer.
  private static let numbers: [HostileScenario] = [
    HostileScenario(
      "C11", story: "a node that is not stale gets another generation (K-4)", error: "staleKeyGeneration", .freezes
    ) { act in
      var draft = try act.zone.draft(next: "folder")
      draft.keyGen += 1
      let record = try RecordSealer.seal(draft)
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario(
      "C11", story: "a new node begins with the last generation (P4)", error: "staleKeyGeneration", .freezes
    ) { act in
      var draft = try act.zone.draft(new: "last")
      draft.keyGen = .max
      let record = try RecordSealer.seal(draft)
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C5", story: "a node's version jumps to the last one (C7)", error: "limitExceeded", .freezes) {
      act in
      var draft = try act.zone.draft(next: "folder")
      draft.recordVersion = .max
      let record = try RecordSealer.seal(draft)
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario(
      "C18", story: "a delete of more nodes than a commit may name (S7)", error: "limitExceeded", .freezes
    ) {
      act in
      let folder = try act.zone.node("folder").record
      act.inject(
        try act.zone.commit([.delete(node: folder.fields.node, record: folder.hash, liveDescendants: 10_001)]))
    },
    HostileScenario(
      "C11", story: "a trunk's root gets another generation than the list (R-root)", error: "keyCommitmentMismatch",
      .freezes
    ) { act in
      let record = RogueZone.record(act.zone.root.record) { fields in
        (fields.recordVersion, fields.prevRecord) = (fields.recordVersion + 1, act.zone.root.record.hash)
        fields.keyGen += 1
      }
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C2", story: "a trunk's root has content (B16)", error: "recordBindingMismatch", .freezes) { act in
      let file = try act.zone.node("small").record.fields.content
      let record = RogueZone.record(act.zone.root.record) { fields in
        (fields.recordVersion, fields.prevRecord) = (fields.recordVersion + 1, act.zone.root.record.hash)
        fields.content = file
      }
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
  ]

  private static let forms: [HostileScenario] = [
    HostileScenario("C10", "32", story: "a commit of version 0", error: "unsupportedVersion", .fails) { act in
      act.tell(.change(.commit) { $0[4] = 0 })
    },
    HostileScenario("C10", "32", story: "a commit of suite 2", error: "unsupportedVersion", .fails) { act in
      act.tell(.change(.commit) { $0[5] = 2 })
    },
    HostileScenario("C10", "32", story: "a record of version 2", error: "objectMissing", .fails) { act in
      act.tell(.change(.record) { $0[4] = 2 })
    },
    HostileScenario("32", story: "bytes behind a commit", error: "nonCanonicalEncoding", .fails) { act in
      act.tell(.change(.commit) { $0.append(0) })
    },
    HostileScenario("32", story: "an object of another kind", error: "nonCanonicalEncoding", .fails) { act in
      act.tell(.change(.commit) { $0.replaceSubrange(0..<4, with: Array("ZDXX".utf8)) })
    },
    HostileScenario("37", "B12", story: "65,535 operations announced", error: "limitExceeded", .fails) { act in
      // The operation count comes after everything else that precedes the operations.
      act.tell(.change(.commit) { $0.replaceSubrange(210..<212, with: [0xff, 0xff]) })
    },
    HostileScenario("37", story: "an item of 4 GiB announced", error: "limitExceeded", .fails) { act in
      act.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.zoneCommits, answer.body.count > 5 else { return false }
          answer.body.replaceSubrange(1..<5, with: [0xff, 0xff, 0xff, 0xff])
          return true
        })
    },
    HostileScenario("37", story: "an item that ends too early", error: "nonCanonicalEncoding", .fails) { act in
      act.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.zoneCommits, answer.body.count > 5 else { return false }
          answer.body.removeLast()
          return true
        })
    },
  ]
}

extension HostileAct {
  /// Creates commits that follow the log and that an authorised writer has signed. Each puts a node.
  fileprivate func puts(_ count: Int) throws -> [ZoneCommit] {
    var commits: [ZoneCommit] = []
    for _ in 0..<count {
      let node = NodeID.random()
      let put = ZoneOperation.Put(
        node: node, parent: zone.zone.root, record: RecordHash(labelledHash: "record", node.bytes), keyGen: 1,
        parentKeyGen: 1)
      commits.append(try zone.commit([.put(put)], after: commits.last))
    }
    return commits
  }

  /// Shows commits at the end of the log's page, the last of which is the head, and others after it.
  fileprivate func show(_ commits: [ZoneCommit], and others: [ZoneCommit] = []) {
    guard let head = commits.last else { return }
    let items = (commits + others).map { ServedItem($0) }
    tell(.add(items, to: zone.zone), .head(zone.zone, seq: head.fields.seq, hash: head.hash))
  }
}
