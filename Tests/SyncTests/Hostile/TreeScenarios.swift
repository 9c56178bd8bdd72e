import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileScenario {
  /// Records, names, access lists and keys.
  static let tree: [HostileScenario] = records + quarantines + access + born

  private static func isNode(_ name: String, _ act: HostileAct) throws -> Lie.Choice {
    let node = try act.zone.node(name).record.fields.node
    return { $0.record?.fields.node == node }
  }

  private static let records: [HostileScenario] = [
    HostileScenario("C2", "23", story: "a record's parent is edited", error: "objectMissing", .fails) { act in
      let folder = try act.zone.node("folder").record.fields.node
      act.tell(
        .change(.record, where: try isNode("new", act)) { bytes in
          bytes = RogueZone.record(try NodeRecord(bytes)) { $0.parent = folder }.bytes
        })
    },
    HostileScenario("C5", "B5", "23", story: "a node's older record", error: "objectMissing", .fails) { act in
      let old = try act.stage.earlyZone.node("small").record
      act.tell(.substitute(.record, with: old.bytes, where: try isNode("small", act)))
    },
    HostileScenario("B4", "18", story: "another node's record", error: "objectMissing", .fails) { act in
      let other = try act.zone.node("left").record
      act.tell(.substitute(.record, with: other.bytes, where: try isNode("right", act)))
    },
    HostileScenario("C1", "24", story: "two siblings' private parts change places", error: "objectMissing", .fails) {
      act in
      let (left, right) = (try act.zone.node("left").record, try act.zone.node("right").record)
      let mixed = RogueZone.record(left) { $0.sealedPrivate = right.fields.sealedPrivate }
      act.tell(.substitute(.record, with: mixed.bytes, where: try isNode("left", act)))
    },
    HostileScenario("C2", "23", story: "one byte of a record is rotten (B15)", error: "objectMissing", .fails) { act in
      act.tell(.turnBit(.record, at: 0, where: try isNode("new", act)))
    },
    HostileScenario("C9", story: "one byte of a grant is rotten (K-3)", error: "grantMissing", .fails, from: .fresh) {
      act in
      act.tell(.turnBit(.grant, at: 0) { $0.grant?.zone == act.zone.zone })
    },
    HostileScenario("C18", story: "a record is withheld", error: "objectMissing", .fails) { act in
      act.tell(.withhold(.record, where: try isNode("new", act)))
    },
    HostileScenario("46", story: "half of a commit's records are withheld", error: "objectMissing", .fails) { act in
      act.tell(.withhold(.record, where: try isNode("left", act)))
    },
    HostileScenario("C3", "B4", "18", story: "a record of another tree", error: "recordBindingMismatch", .freezes) {
      act in
      let record = RogueZone.record(try RecordSealer.seal(try act.zone.draft(new: "foreign"))) {
        $0.tree = act.stage.strangerZone.zone.tree
      }
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C3", story: "a record with another parent than its put", error: "recordBindingMismatch", .freezes)
    {
      act in
      let record = try RecordSealer.seal(try act.zone.draft(new: "elsewhere"))
      var put = ZoneOperation.Put(record)
      put.parent = try act.zone.node("folder").record.fields.node
      act.inject(try act.zone.commit([.put(put)]), records: [record])
    },
    HostileScenario(
      "B6", "20", story: "a record by another writer than its commit", error: "recordBindingMismatch",
      .freezes
    ) { act in
      var draft = try act.zone.draft(new: "forged")
      draft.writer = act.stage.stranger.keys.userID
      let record = try RecordSealer.seal(draft)
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C5", story: "a version that is not higher", error: "recordRollback", .freezes) { act in
      var draft = try act.zone.draft(next: "small")
      // The version that the victim already has.
      draft.recordVersion = 1
      let record = try RecordSealer.seal(draft)
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
    HostileScenario("C5", story: "a record that follows another one", error: "recordRollback", .freezes) { act in
      var draft = try act.zone.draft(next: "small")
      draft.prevRecord = try act.zone.node("left").record.hash
      let record = try RecordSealer.seal(draft)
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
  ]

  /// A fault that an honest server cannot detect: it accepts the commit, and a later valid put ends the quarantine.
  private static func quarantined(
    _ rows: String..., story: String, error: String, node: String = "renamed",
    _ spoil: @escaping @Sendable (HostileAct, RecordDraft) throws -> NodeRecord
  ) -> HostileScenario {
    var scenario = HostileScenario(
      "", story: story, error: error, .quarantines,
      mend: { act in
        let rogue = try await act.rogue()
        let bad = try await spoiled(rogue, node: node, act)
        var draft = try act.zone.draft(next: node)
        draft.recordVersion = bad.record.fields.recordVersion + 1
        draft.prevRecord = bad.record.hash
        let good = try RecordSealer.seal(draft)
        try await rogue.push(try act.zone.commit(putting: good, after: bad.commit), [good])
      }
    ) { act in
      let rogue = try await act.rogue()
      let record = try spoil(act, try act.zone.draft(next: node))
      try await rogue.push(try act.zone.commit(putting: record), [record])
    }
    scenario.rows = rows
    return scenario
  }

  private static func spoiled(
    _ rogue: RogueWriter, node: String, _ act: HostileAct
  ) async throws -> (record: NodeRecord, commit: ZoneCommit) {
    let page = try await rogue.homeObjects()
    let id = try act.zone.node(node).record.fields.node
    guard let record = page.records.first(where: { $0.fields.node == id }), let commit = page.commits.last else {
      throw TestFailure("the spoiled record is not there")
    }
    return (record, commit)
  }

  private static let quarantines: [HostileScenario] = [
    quarantined("C1", "24", story: "a private part that does not open", error: "recordAuthFailed") { act, draft in
      let other = try act.zone.node("left").record.fields.sealedPrivate
      return RogueZone.record(try RecordSealer.seal(draft)) { $0.sealedPrivate = other }
    },
    quarantined("C1", story: "a key that does not open", error: "recordAuthFailed") { act, draft in
      let other = try act.zone.node("left").record.fields.parentWrap
      return RogueZone.record(try RecordSealer.seal(draft)) { $0.parentWrap = other }
    },
    quarantined("35", "C14", "C1", story: "a tag that is not the name's", error: "nameTagMismatch") { _, draft in
      RogueZone.record(try RecordSealer.seal(draft)) { $0.nameTag = .random() }
    },
    quarantined("B12", story: "sizes inside that are not those outside", error: "contentHeaderInvalid") { _, draft in
      var draft = draft
      if let old = draft.secrets.content {
        draft.secrets.content = ContentSecrets(
          key: old.key, sizes: ContentSizes(metadata: 0, thumbnail: 0, data: 1 << 33), thumbnailTag: old.thumbnailTag)
      }
      return try RecordSealer.seal(draft)
    },
    HostileScenario(
      "35", "C14", story: "two nodes of one name", error: "duplicateName", .quarantines,
      reveals: ["/left 2", "new /left"],
      mend: { act in
        // An honest server has no such commit; the user decides.
        await #expect(throws: ZDCSecurityError.self) { try await act.victim.pull() }
        try await act.acceptServerState()
      }
    ) { act in
      let record = try RecordSealer.seal(try act.zone.draft(new: "left"))
      act.inject(try act.zone.commit(putting: record), records: [record])
    },
  ]

  /// An access list that a stranger has signed, and that names them.
  private static func listOfStranger(_ act: HostileAct) throws -> ZoneACL {
    let stranger = act.stage.stranger.keys
    return try act.zone.nextACL(signedBy: stranger.signingKey) { fields in
      fields.entries.append(
        ZoneACL.Entry(
          user: stranger.userID, permissions: [.read, .write], encGen: 1, wrapKind: .nodeKey,
          wrapHash: act.zone.grant.wrapHash))
      fields.entries.sort { $0.user < $1.user }
    }
  }

  private static let access: [HostileScenario] = [
    HostileScenario("28", "C4", story: "the owner loses a right", error: "aclOwnerImmutable", .freezes) { act in
      let acl = try act.zone.nextACL { $0.entries[0].permissions = [.read] }
      act.inject(try act.zone.commit(bringing: acl), acl: acl, grants: [act.zone.grant])
    },
    HostileScenario(
      "26", "C4", "C17", story: "a member is added by the server", error: "aclSignatureInvalid", .suspends
    ) {
      act in
      let stranger = act.stage.stranger.keys
      let acl = try listOfStranger(act)
      act.inject(
        try act.zone.commit(bringing: acl, signedBy: stranger.signingKey), acl: acl, grants: [act.zone.grant])
    },
    HostileScenario(
      "9", "A6", story: "a grant of the server's key, named in the server's own list", error: "aclSignatureInvalid",
      .suspends
    ) { act in
      let stranger = act.stage.stranger.keys
      let link = try await act.rogue().chain()[0]
      let grant = try GrantSealer(zone: act.zone.zone, zoneKeyGen: 1, key: .random())
        .seal(for: act.stage.user, encGen: 1, encPub: link.encPub)
      let acl = try act.zone.nextACL(signedBy: stranger.signingKey) { $0.entries[0].wrapHash = grant.wrapHash }
      act.inject(try act.zone.commit(bringing: acl, signedBy: stranger.signingKey), acl: acl, grants: [grant])
    },
    HostileScenario("27", "C4", story: "a stranger signs an access list", error: "aclNotAuthorized", .suspends) { act in
      let stranger = act.stage.stranger.keys
      let acl = try act.zone.nextACL(signedBy: stranger.signingKey) { $0.writer = stranger.userID }
      let commit = try act.zone.commit(
        [.acl(version: acl.fields.version, hash: acl.hash)], signedBy: stranger.signingKey
      ) {
        $0.aclHash = acl.hash
        $0.writer = stranger.userID
      }
      act.inject(commit, acl: acl, grants: [act.zone.grant])
    },
    HostileScenario("26", "C4", story: "an access list that no commit names (B22)", error: "", .passes) { act in
      let acl = try listOfStranger(act)
      act.tell(.add([ServedItem(acl), ServedItem(act.zone.grant)], to: act.zone.zone))
    },
    HostileScenario("C5", story: "an access list that skips a version", error: "aclRollback", .freezes) { act in
      let acl = try act.zone.nextACL { $0.version += 1 }
      act.inject(try act.zone.commit(bringing: acl), acl: acl, grants: [act.zone.grant])
    },
    HostileScenario("C5", story: "a commit under another access list", error: "aclRollback", .freezes) { act in
      let record = try RecordSealer.seal(try act.zone.draft(new: "under"))
      act.inject(
        try act.zone.commit([.put(ZoneOperation.Put(record))]) { $0.aclHash = .zero }, records: [record])
    },
    HostileScenario(
      "C10", "32", story: "an access list that lowers the protocol", error: "unsupportedVersion",
      .fails
    ) { act in
      let acl = try act.zone.nextACL { $0.minProtocol = 0 }
      act.inject(try act.zone.commit(bringing: acl), acl: acl, grants: [act.zone.grant])
    },
    HostileScenario(
      "B7", "A6", story: "a grant of another key, named by the owner", error: "keyCommitmentMismatch",
      .fails,
      // This device has the key: it reports the error, and misses nothing.
      mend: { _ in }
    ) { act in
      // The server cannot detect it, and the log continues.
      let rogue = try await act.rogue()
      let link = try await rogue.chain()[0]
      let grant = try GrantSealer(zone: act.zone.zone, zoneKeyGen: 1, key: .random())
        .seal(for: act.stage.user, encGen: 1, encPub: link.encPub)
      let acl = try act.zone.nextACL { $0.entries[0].wrapHash = grant.wrapHash }
      try await rogue.push(try act.zone.commit(bringing: acl), acl: acl, grants: [grant])
    },
  ]

  /// A device that has nothing yet.
  private static let born: [HostileScenario] = [
    HostileScenario(
      "9", "A6", story: "a grant of the server's key, named in an edited list",
      error: "zoneForkDetected", .freezes, from: .fresh
    ) { act in
      let link = try await act.rogue().chain()[0]
      let grant = try GrantSealer(zone: act.zone.zone, zoneKeyGen: 1, key: .random())
        .seal(for: act.stage.user, encGen: 1, encPub: link.encPub)
      act.tell(try forgedBirth(act) { $0.entries[0].wrapHash = grant.wrapHash })
      act.tell(
        .rewrite(.grant) { items in
          for index in items.indices where items[index].grant?.zone == act.zone.zone {
            items[index].object = grant.bytes
          }
        })
    },
    HostileScenario(
      "26", "C4", "C17", story: "a member in the first access list", error: "zoneForkDetected",
      .freezes, from: .fresh
    ) { act in
      let stranger = act.stage.stranger.keys.userID
      act.tell(
        try forgedBirth(act) { fields in
          fields.entries.append(
            ZoneACL.Entry(
              user: stranger, permissions: [.read], encGen: 1, wrapKind: .nodeKey, wrapHash: act.zone.grant.wrapHash))
          fields.entries.sort { $0.user < $1.user }
        })
    },
    HostileScenario(
      "A6", "C9", story: "a grant of the server's key", error: "grantHashMismatch", .fails,
      from: .fresh
    ) { act in
      let link = try await act.rogue().chain()[0]
      let grant = try GrantSealer(zone: act.zone.zone, zoneKeyGen: 1, key: .random())
        .seal(for: act.stage.user, encGen: 1, encPub: link.encPub)
      act.tell(.substitute(.grant, with: grant.bytes) { $0.grant?.zone == act.zone.zone })
    },
    HostileScenario("C9", story: "no grant", error: "grantMissing", .fails, from: .fresh) { act in
      act.tell(.withhold(.grant) { $0.grant?.zone == act.zone.zone })
    },
    HostileScenario(
      "8", "C3", story: "another tree with a valid beginning", error: "zoneForkDetected", .freezes,
      from: .fresh
    ) { act in
      let other = try TrunkGenesis(
        .home, appTreeID: TestDevice.treeID,
        owner: TrunkOwner(
          user: act.stage.user, signingKey: act.zone.keys.signingKey, signGen: 1,
          encPub: try await act.rogue().chain()[0].encPub, encGen: 1), timeMs: 1)
      let items = [ServedItem(other.acl), ServedItem(other.grant), ServedItem(other.commit), ServedItem(other.root)]
      act.tell(
        Lie { answer in
          guard answer.path.contains(act.zone.zone.tree.text), answer.isBundle else { return false }
          answer.items = items
          return true
        }, .head(act.zone.zone, seq: 0, hash: other.commit.hash))
    },
  ]

  /// Returns a lie that edits the zone's first access list, and the first commit with it.
  private static func forgedBirth(
    _ act: HostileAct, _ change: @escaping @Sendable (inout ZoneACL.Fields) -> Void
  ) throws -> Lie {
    let stranger = act.stage.stranger.keys.signingKey
    var fields = act.zone.acl.fields
    change(&fields)
    let acl = try ZoneACL(fields) { try stranger.sign(label: "acl", message: $0) }
    var first = act.zone.commits[0].fields
    first.aclHash = acl.hash
    first.operations[0] = .acl(version: 1, hash: acl.hash)
    let commit = try ZoneCommit(first) { try stranger.sign(label: "commit", message: $0) }
    let zone = act.zone.zone
    return Lie { answer in
      guard answer.isBundle, answer.path.contains(zone.tree.text) else { return false }
      var items = answer.items
      for index in items.indices {
        if items[index].kind == .acl { items[index].object = acl.bytes }
        if items[index].commit?.fields.seq == 0 { items[index].object = commit.bytes }
      }
      answer.items = items
      return true
    }
  }
}
