import ZDCProtocol

/// A zone as one device knows it: its head, its live nodes, and the making of valid commits.
struct TestZone {
  let owner: UserID
  let zone: ZoneID
  let signKey: SigningKey
  let birth: [UInt8]
  var acl: ZoneACL
  var seq: UInt64 = 0
  var headHash: CommitHash
  var records: [NodeID: NodeRecord] = [:]

  /// - Parameter root: nil for the trunk's own zone.
  init(owner: UserID, signKey: SigningKey, trunk: Trunk, app: String, root: NodeID? = nil) throws {
    self.owner = owner
    self.signKey = signKey
    let tree = TreeID.derive(owner: owner, trunk: trunk, appTreeID: app)
    let zone = root.map { ZoneID(tree: tree, root: $0) } ?? ZoneID(trunkOf: tree)
    self.zone = zone
    let commitments = NodeRecord.ZoneCommitments(
      node: KeyCommitment(randomBytes(32))!, content: KeyCommitment(randomBytes(32))!)
    let grant = Grant(zone: zone, zoneKeyGen: 1, user: owner, wrap: randomBytes(1_168))
    let entry = ZoneACL.Entry(
      user: owner, permissions: [.read, .write, .share], encGen: 1, wrapKind: .nodeKey, wrapHash: grant.wrapHash)
    let fields = ZoneACL.Fields(
      zone: zone, owner: owner, trunk: trunk, appTreeID: app, version: 1, prev: .zero, parentLinked: false,
      zoneKeyGen: 1, commitments: commitments, entries: [entry], writer: owner, writerGen: 1, timeMs: 1)
    let acl = try ZoneACL(fields) { try signKey.sign("acl", $0) }
    self.acl = acl
    let root = NodeRecord(
      NodeRecord.Fields(
        tree: zone.tree, node: zone.root, parent: .zero, recordVersion: 1, prevRecord: .zero, keyGen: 1,
        parentKeyGen: 0, parentWrap: [], historyWrap: [], nameTag: .zero, commitments: commitments,
        sealedPrivate: randomBytes(104), writer: owner, writerGen: 1, timeMs: 1))
    let commit = try ZoneCommit(
      ZoneCommit.Fields(
        zone: zone, seq: 0, prev: ZoneCommit.genesisPrev(zone: zone), aclHash: acl.hash, writer: owner, writerGen: 1,
        timeMs: 1, operations: [.acl(version: 1, hash: acl.hash), .put(.init(root))])
    ) { try signKey.sign("commit", $0) }
    var writer = Bundle.Writer()
    writer.append(record: root.bytes)
    writer.append(grant: grant.bytes)
    writer.append(acl: acl.bytes)
    writer.append(commit: commit.bytes)
    birth = writer.bytes
    headHash = commit.hash
    records[zone.root] = root
  }

  /// Content that fits into the request.
  struct Content {
    var blob = BlobID.random()
    var bytes: [UInt8]
    var root: ContentRoot { ContentRoot(reinterpreting: MerkleTree.leafHash(bytes)) }

    init(_ count: Int = 400) {
      bytes = randomBytes(count)
    }

    func field(version: UInt64 = 1) -> NodeRecord.Content {
      NodeRecord.Content(
        dataVersion: version, blobID: blob, cipherLength: UInt64(bytes.count), contentRoot: root)
    }
  }

  /// A record for a new node, or the next one for a node that is there.
  func record(
    _ node: NodeID, parent: NodeID? = nil, tag: NameTag? = nil, content: NodeRecord.Content? = nil,
    change: (inout NodeRecord.Fields) -> Void = { _ in }
  ) -> NodeRecord {
    let old = records[node]
    var fields = NodeRecord.Fields(
      tree: zone.tree, node: node, parent: parent ?? old?.fields.parent ?? zone.root,
      recordVersion: (old?.fields.recordVersion ?? 0) + 1, prevRecord: old?.hash ?? .zero, keyGen: 1, parentKeyGen: 1,
      parentWrap: randomBytes(104), historyWrap: [], nameTag: tag ?? old?.fields.nameTag ?? .random(),
      content: content ?? old?.fields.content, sealedPrivate: randomBytes(200), writer: owner, writerGen: 1, timeMs: 2)
    change(&fields)
    return NodeRecord(fields)
  }

  /// The next commit of this zone, signed; the zone's own state does not move.
  func commit(_ operations: [ZoneOperation], change: (inout ZoneCommit.Fields) -> Void = { _ in }) throws -> ZoneCommit
  {
    var fields = ZoneCommit.Fields(
      zone: zone, seq: seq + 1, prev: headHash, aclHash: acl.hash, writer: owner, writerGen: 1, timeMs: 3,
      operations: operations)
    change(&fields)
    return try ZoneCommit(fields) { try signKey.sign("commit", $0) }
  }

  /// The body of a commit request.
  static func body(_ commit: ZoneCommit, records: [NodeRecord] = [], contents: [Content] = []) -> [UInt8] {
    var writer = Bundle.Writer()
    for content in contents { writer.append(content: content.bytes, blob: content.blob) }
    for record in records { writer.append(record: record.bytes) }
    writer.append(commit: commit.bytes)
    return writer.bytes
  }

  /// A commit of these puts and its body.
  func put(_ puts: [NodeRecord], contents: [Content] = []) throws -> (commit: ZoneCommit, body: [UInt8]) {
    let commit = try commit(puts.map { .put(.init($0)) })
    return (commit, Self.body(commit, records: puts, contents: contents))
  }

  /// The zone moves on: the server took this commit.
  mutating func accepted(_ commit: ZoneCommit, records puts: [NodeRecord] = []) {
    seq = commit.fields.seq
    headHash = commit.hash
    for record in puts { records[record.fields.node] = record }
    for case .delete(let node, _, _) in commit.fields.operations { records[node] = nil }
  }
}
