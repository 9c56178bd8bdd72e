import ZDCProtocol

/// Objects that decode, with every optional field set or drawn. Values are random, signatures are not valid.
enum Samples {
  static func id16<Role>(_ generator: inout SeededGenerator) -> Bytes16<Role> {
    Bytes16(high: generator.next(), low: generator.next())
  }

  static func id32<Role>(_ generator: inout SeededGenerator) -> Bytes32<Role> {
    Bytes32(generator.next(), generator.next(), generator.next(), generator.next())
  }

  static func zone(_ generator: inout SeededGenerator) -> ZoneID {
    ZoneID(tree: id32(&generator), root: id16(&generator))
  }

  static func link(_ generator: inout SeededGenerator) -> [UInt8] {
    var fields = IdentityLink.Fields(
      kind: .rotateKeys, timeMs: generator.next(), rootPub: generator.bytes(32), signPub: generator.bytes(32),
      encPub: generator.bytes(IdentityLink.encPubBytes))
    fields.seq = 7
    fields.prev = id32(&generator)
    fields.userID = id32(&generator)
    fields.compromise = UInt8.random(in: 0...3, using: &generator)
    fields.keyringHash = id32(&generator)
    fields.claims = [
      IdentityLink.Claim(type: IdentityLink.Claim.handle, value: Array("alice".utf8)),
      .tree(appTreeID: "com.example.app", genesisCommits: (0..<4).map { _ in id32(&generator) }),
    ]
    return fields.unsignedBytes + generator.bytes(192)
  }

  static func content(_ generator: inout SeededGenerator) -> NodeRecord.Content {
    NodeRecord.Content(
      dataVersion: generator.next(), blobID: id16(&generator),
      cipherLength: UInt64.random(in: 136...Limits.contentCipherBytes, using: &generator),
      contentRoot: id32(&generator))
  }

  static func record(_ generator: inout SeededGenerator, allFields: Bool) -> NodeRecord.Fields {
    let some = { (generator: inout SeededGenerator) in allFields || Bool.random(using: &generator) }
    let content = some(&generator) ? content(&generator) : nil
    return NodeRecord.Fields(
      tree: id32(&generator), node: id16(&generator), parent: id16(&generator), recordVersion: generator.next(),
      prevRecord: id32(&generator), keyGen: 3, parentKeyGen: 2, parentWrap: generator.bytes(104),
      historyWrap: generator.bytes(some(&generator) ? 108 : 0), nameTag: id16(&generator),
      isPointer: some(&generator),
      commitments: some(&generator) ? .init(node: id32(&generator), content: id32(&generator)) : nil,
      content: content,
      dataAuthor: content != nil && some(&generator) ? .init(writer: id32(&generator), timeMs: 5) : nil,
      burnMs: some(&generator) ? generator.next() : nil, sealedPrivate: generator.bytes(200),
      writer: id32(&generator), writerGen: 1, timeMs: generator.next())
  }

  static func operations(_ generator: inout SeededGenerator) -> [ZoneOperation] {
    [
      .put(
        .init(node: id16(&generator), parent: id16(&generator), record: id32(&generator), keyGen: 1, parentKeyGen: 1)),
      .delete(node: id16(&generator), record: id32(&generator), liveDescendants: 4),
      .acl(version: 2, hash: id32(&generator)),
      .split(node: id16(&generator), genesis: id32(&generator), count: 9),
      .retireKey(user: id32(&generator), gen: 2),
      .genesisState(.init(parentHead: id32(&generator), stateRoot: id32(&generator), count: 100)),
    ]
  }

  static func commit(_ generator: inout SeededGenerator) -> ZoneCommit.Fields {
    ZoneCommit.Fields(
      zone: zone(&generator), seq: 41, prev: id32(&generator), aclHash: id32(&generator), writer: id32(&generator),
      writerGen: 1, timeMs: generator.next(), operations: operations(&generator))
  }

  static func acl(_ generator: inout SeededGenerator) -> ZoneACL.Fields {
    let rights: [ZoneACL.Permissions] = [[.read, .write, .share], [.read], [.read, .write]]
    let entries = rights.map { rights in
      ZoneACL.Entry(
        user: id32(&generator), permissions: rights, encGen: 1, wrapKind: .nodeKey, wrapHash: id32(&generator))
    }
    return ZoneACL.Fields(
      zone: zone(&generator), owner: id32(&generator), trunk: .home, appTreeID: "com.example.app", version: 2,
      prev: id32(&generator), parentLinked: false, zoneKeyGen: 3,
      commitments: .init(node: id32(&generator), content: id32(&generator)), historyWrap: generator.bytes(144),
      entries: entries.sorted { $0.user < $1.user }, writer: id32(&generator), writerGen: 1, timeMs: 17)
  }

  static func stateList(_ generator: inout SeededGenerator) -> StateList {
    let nodes = (0..<5).map { _ in
      LogNode(
        node: id16(&generator), parent: id16(&generator), record: id32(&generator), putSeq: 0, keyGen: 2,
        parentKeyGen: 1)
    }
    return StateList(branch: nodes, top: nodes[0].node)
  }

  /// An edit that changes one member, adds one and removes one.
  static func aclEdit(_ generator: inout SeededGenerator) -> ZoneACLEdit {
    let old = ZoneACL(acl(&generator), sign: { _ in [UInt8](repeating: 7, count: 64) })
    var fields = old.fields
    (fields.version, fields.prev) = (3, old.hash)
    fields.entries.remove(at: 1)
    fields.entries[0].wrapHash = id32(&generator)
    fields.entries.append(
      ZoneACL.Entry(
        user: id32(&generator), permissions: [.read], encGen: 1, wrapKind: .nodeKey, wrapHash: id32(&generator)))
    fields.entries.sort { $0.user < $1.user }
    return ZoneACLEdit(from: old, to: ZoneACL(fields, sign: { _ in [UInt8](repeating: 8, count: 64) }))
  }

  static func attach(_ generator: inout SeededGenerator) -> AttachedContent {
    AttachedContent(tree: id32(&generator), node: id16(&generator), blob: id16(&generator))
  }

  static func grant(_ generator: inout SeededGenerator) -> Grant {
    Grant(zone: zone(&generator), zoneKeyGen: 1, user: id32(&generator), wrap: generator.bytes(1_168))
  }

  static func bundle(_ generator: inout SeededGenerator) -> [UInt8] {
    var writer = Bundle.Writer()
    writer.append(acl: ZoneACL(acl(&generator), sign: { _ in [UInt8](repeating: 7, count: 64) }).bytes)
    writer.append(grant: grant(&generator).bytes)
    writer.append(
      record: record(&generator, allFields: true).bytes, recordReceivedMs: generator.next(), dataReceivedMs: 3)
    writer.append(content: generator.bytes(200), blob: id16(&generator))
    writer.append(aclEdit: aclEdit(&generator))
    writer.append(attach: attach(&generator))
    writer.append(
      commit: ZoneCommit(commit(&generator), sign: { _ in [UInt8](repeating: 8, count: 64) }).bytes, receivedMs: 9)
    return writer.bytes
  }
}
