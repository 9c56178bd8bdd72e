internal import Foundation
package import ZDCCrypto
package import ZDCProtocol
package import ZeroDarkCloud

/// An attacker with an account's words who follows no rules. It creates commits and records that no honest client would
/// create, signed with any key.
///
/// A ``Lie`` delivers objects that an honest server would refuse. Objects whose fault the server cannot detect are
/// pushed.
package struct RogueWriter: Sendable {
  package let keys: UserKeys
  private let api: ServerAPI

  /// - Parameters:
  ///   - words: The account's words.
  ///   - server: The server to connect to.
  ///   - origin: The address under which the server is known, if it is a fork.
  package init(words: [String], user: UserID, server: TestServer, origin: String? = nil) async throws {
    let accessKey = try AccessKey(words: words)
    let connection = ServerConnection(
      transport: try AsyncHTTPTransport(serverURL: server.url.absoluteString),
      address: try ServerAddress(origin ?? server.url.absoluteString))
    let session = Session(
      connection: connection,
      credentials: SessionCredentials(
        userID: user, accessKey: accessKey, deviceID: .random(), deviceKey: .random()))
    api = ServerAPI(connection: connection, session: session)
    keys = try UserKeys(
      chain: try await api.chain(of: user), keyringBlob: try await api.keyring(), accessKey: accessKey, expected: user)
  }

  package func keyring() async throws -> [UInt8] { try await api.keyring() }

  /// Returns the account's keyring with another version, and with a next signature key if there is one.
  package func keyring(version: UInt64, next: SigningKey? = nil) throws -> Keyring {
    guard let decryption = try keys.decryptionKey(gen: keys.identity.encGen) else {
      throw TestFailure("no decryption key")
    }
    var entries = [
      Keyring.Entry(
        signing: keys.signingKey, gen: keys.signGen, status: next == nil ? .current : .retired, createdMs: 1)
    ]
    if let next {
      entries.append(Keyring.Entry(signing: next, gen: keys.signGen + 1, status: .current, createdMs: 1))
    }
    entries.append(Keyring.Entry(decryption: decryption, gen: keys.identity.encGen, status: .current, createdMs: 1))
    return Keyring(version: version, user: keys.userID, entries: entries)
  }

  package func chain() async throws -> [IdentityLink] {
    var reader = ZDCProtocol.Bundle.Reader(try await api.chain(of: keys.userID))
    return try reader.all().compactMap { item in
      if case .link(let link) = item { link } else { nil }
    }
  }

  /// Creates the signature key's next generation, as another device of the user would. Nothing is sent.
  package func nextSigningKey() async throws -> (link: IdentityLink, keyring: [UInt8], key: SigningKey) {
    let last = try await chain()[0]
    let signing = SigningKey.random()
    let keyring = try keyring(version: 2, next: signing).seal(keys.accessKey.keyringKey)
    var fields = IdentityLink.Fields(
      kind: .rotateKeys, timeMs: 1, rootPub: last.rootPub, signPub: signing.publicKey, encPub: last.encPub)
    (fields.seq, fields.prev, fields.userID, fields.signGen) = (1, last.hash, keys.userID, 2)
    (fields.keyringVersion, fields.keyringHash) = (2, Keyring.hash(keyring))
    return (try IdentityLink(signing: fields, root: keys.accessKey.rootKey, sign: signing), keyring, signing)
  }

  /// Appends a link to the account's chain.
  package func append(_ link: IdentityLink, keyring: [UInt8]? = nil, accessKey: AccessKey? = nil) async throws {
    try await api.appendLink(
      AppendLinkRequest(
        link: WireBytes(link.bytes), keyring: keyring.map { WireBytes($0) }, lookupID: accessKey?.lookupID,
        loginKey: accessKey.map { WireBytes($0.loginKey.publicKey) }))
  }

  /// Downloads and opens the account's home zone in its current state on the server.
  package func home() async throws -> RogueZone {
    var reader = ZDCProtocol.Bundle.Reader(try await homePage())
    return try RogueZone(zone: homeZone, items: try reader.all(), keys: keys)
  }

  /// Downloads and opens any zone of the account in its current state on the server. Nodes that no commit of the zone has put
  /// are left out.
  package func zone(_ zone: ZoneID) async throws -> RogueZone {
    var reader = ZDCProtocol.Bundle.Reader(try await page(of: zone))
    return try RogueZone(zone: zone, items: try reader.all(), keys: keys)
  }

  /// Downloads the whole current log of another trunk, with its records.
  package func pageOfTrunk(_ trunk: Trunk) async throws -> CommitPage {
    let zone = ZoneID(trunkOf: .derive(owner: keys.userID, trunk: trunk, appTreeID: TestDevice.treeID))
    return try await api.commitPage(zone, after: nil, withRecords: true)
  }

  /// Downloads the whole log of a zone, as the server shows it to the account.
  package func page(of zone: ZoneID) async throws -> [UInt8] {
    try await api.commitPage(zone, after: nil, withRecords: true).body
  }

  /// Downloads records of a zone by node and hash.
  package func records(_ leaves: [LogNode], of zone: ZoneID) async throws -> [NodeRecord] {
    try PageContents(try await api.records(zone, leaves)).records.values.map(\.record)
  }

  private var homeZone: ZoneID {
    ZoneID(trunkOf: .derive(owner: keys.userID, trunk: .home, appTreeID: TestDevice.treeID))
  }

  private func homePage() async throws -> [UInt8] {
    try await api.commitPage(homeZone, after: nil, withRecords: true).body
  }

  /// Downloads the ciphertext of a record's content.
  package func content(_ record: NodeRecord) async throws -> [UInt8] {
    guard let blob = record.fields.content?.blobID else { throw TestFailure("a record without content") }
    let zone = ZoneID(trunkOf: record.fields.tree)
    return try await api.content(zone, node: record.fields.node, blob: blob).body.collect(upTo: .max)
  }

  /// Pushes objects whose fault an honest server cannot detect.
  package func push(
    _ commit: ZoneCommit, _ records: [NodeRecord] = [], contents: [(BlobID, [UInt8])] = [],
    acl: ZoneACL? = nil, grants: [Grant] = []
  ) async throws {
    var bundle = ZDCProtocol.Bundle.Writer()
    for (blob, bytes) in contents { bundle.append(content: bytes, blob: blob) }
    if let acl { bundle.append(acl: acl.bytes) }
    for grant in grants { bundle.append(grant: grant.bytes) }
    for record in records { bundle.append(record: record.bytes) }
    bundle.append(commit: commit.bytes)
    guard case .accepted = try await api.push(bundle.bytes) else { throw TestFailure("the server is further on") }
  }
}

/// A zone with all its keys, as a ``RogueWriter`` sees it.
package struct RogueZone: Sendable {
  package let zone: ZoneID
  package let keys: UserKeys
  package private(set) var commits: [ZoneCommit] = []
  package private(set) var acl: ZoneACL
  package private(set) var grant: Grant
  /// The live records of all nodes except the root, by name. Names are unique within a test's tree.
  package private(set) var nodes: [String: OpenedRecord] = [:]
  package let root: OpenedRecord

  init(zone: ZoneID, items: [ZDCProtocol.Bundle.Item], keys: UserKeys) throws {
    self.zone = zone
    self.keys = keys
    var records: [NodeRecord] = []
    var lists: [(ZoneACL, Grant)] = []
    var newest: ZoneACL?
    for item in items {
      switch item {
      case .commit(_, let commit): commits.append(commit)
      case .record(_, _, let record): records.append(record)
      case .acl(let acl): newest = acl
      case .grant(let grant): if let newest { lists.append((newest, grant)) }
      default: break
      }
    }
    guard let last = lists.last, let top = records.first(where: { $0.fields.node == zone.root }) else {
      throw TestFailure("the zone has no root")
    }
    (acl, grant) = last
    root = try RecordOpener.open(
      zoneRoot: top, key: try keys.open(grant, in: acl), commitments: acl.fields.commitments)
    try open(records)
  }

  private mutating func open(_ records: [NodeRecord]) throws {
    var parents = [zone.root: root]
    var rest = records.filter { $0.fields.node != zone.root }
    while !rest.isEmpty {
      let ready = rest.filter { parents[$0.fields.parent] != nil }
      guard !ready.isEmpty else { throw TestFailure("records without a parent") }
      for record in ready {
        guard let parent = parents[record.fields.parent] else { continue }
        let opened = try RecordOpener.open(record, parent: try keys(of: parent, record.fields.parentKeyGen))
        parents[record.fields.node] = opened
        nodes[opened.name] = opened
      }
      rest.removeAll { parents[$0.fields.node] != nil }
    }
  }

  /// Returns a parent's keys of a generation. Children that are not rotated yet use an older key of their parent.
  private func keys(of parent: OpenedRecord, _ keyGen: UInt32) throws -> ParentKeys {
    if keyGen == parent.record.fields.keyGen { return parent.parentKeys }
    // The zone's own history is in the access list.
    let isRoot = parent.record.fields.node == zone.root
    let history = try isRoot ? KeyHistory(of: acl.fields, key: parent.key) : parent.history()
    guard let key = history.key(keyGen) else { throw TestFailure("a key generation that is not kept") }
    return ParentKeys(key, keyGen: keyGen)
  }

  package var head: ZoneCommit {
    get throws {
      guard let head = commits.last else { throw TestFailure("the zone has no commit") }
      return head
    }
  }

  package func node(_ name: String) throws -> OpenedRecord {
    if name.isEmpty { return root }
    guard let node = nodes[name] else { throw TestFailure("no node \(name)") }
    return node
  }

  // MARK: Forged objects

  /// Drafts a new node's record, as an honest client would.
  package func draft(new name: String, below parent: String = "") throws -> RecordDraft {
    let above = try node(parent)
    return RecordDraft(
      tree: zone.tree, node: .random(), parent: above.record.fields.node, key: .random(),
      parentLink: .keys(above.parentKeys), secrets: RecordPrivate(name: try FoldedName(name), createdMs: 1),
      writer: keys.userID, writerGen: keys.signGen, timeMs: 1)
  }

  /// Drafts a node's next record, as an honest client would.
  package func draft(next name: String, below parent: String = "") throws -> RecordDraft {
    let old = try node(name)
    var draft = RecordDraft(
      tree: zone.tree, node: old.record.fields.node, parent: try node(parent).record.fields.node,
      recordVersion: old.record.fields.recordVersion + 1, prevRecord: old.record.hash, key: old.key,
      keyGen: old.record.fields.keyGen, parentLink: .keys(try node(parent).parentKeys), secrets: old.secrets,
      content: old.record.fields.content, writer: keys.userID, writerGen: keys.signGen, timeMs: 1)
    if draft.content != nil { draft.dataAuthor = NodeRecord.DataAuthor(writer: keys.userID, timeMs: 1) }
    draft.historyWrap = old.record.fields.historyWrap
    return draft
  }

  /// Creates a commit after the head or another commit, signed by the account or with any other key.
  package func commit(
    _ operations: [ZoneOperation], after previous: ZoneCommit? = nil, signedBy signer: SigningKey? = nil,
    _ change: (inout ZoneCommit.Fields) -> Void = { _ in }
  ) throws -> ZoneCommit {
    let head = try previous ?? head
    var fields = ZoneCommit.Fields(
      zone: zone, seq: head.fields.seq + 1, prev: head.hash, aclHash: acl.hash, writer: keys.userID,
      writerGen: keys.signGen, timeMs: 1, operations: operations)
    change(&fields)
    return try ZoneCommit(fields) { try (signer ?? keys.signingKey).sign(label: "commit", message: $0) }
  }

  package func commit(putting records: NodeRecord..., after previous: ZoneCommit? = nil) throws -> ZoneCommit {
    try commit(records.map { .put(ZoneOperation.Put($0)) }, after: previous)
  }

  /// Creates the next access list with a change, signed by the account or with any other key.
  package func nextACL(
    signedBy signer: SigningKey? = nil, _ change: (inout ZoneACL.Fields) -> Void
  ) throws -> ZoneACL {
    var fields = acl.fields
    fields.version += 1
    fields.prev = acl.hash
    fields.writer = keys.userID
    fields.timeMs = 1
    change(&fields)
    return try ZoneACL(fields) { try (signer ?? keys.signingKey).sign(label: "acl", message: $0) }
  }

  /// Creates a commit that carries an access list.
  package func commit(bringing acl: ZoneACL, signedBy signer: SigningKey? = nil) throws -> ZoneCommit {
    try commit([.acl(version: acl.fields.version, hash: acl.hash)], signedBy: signer) { $0.aclHash = acl.hash }
  }

  /// Returns a record whose fields are changed after it was sealed.
  package static func record(_ record: NodeRecord, _ change: (inout NodeRecord.Fields) -> Void) -> NodeRecord {
    var fields = record.fields
    change(&fields)
    return NodeRecord(fields)
  }
}

extension RogueWriter {
  /// Downloads the home zone's commits and live records from the server, whether they open or not.
  package func homeObjects() async throws -> (commits: [ZoneCommit], records: [NodeRecord]) {
    var reader = ZDCProtocol.Bundle.Reader(try await homePage())
    var (commits, records): ([ZoneCommit], [NodeRecord]) = ([], [])
    while let item = try reader.next() {
      switch item {
      case .commit(_, let commit): commits.append(commit)
      case .record(_, _, let record): records.append(record)
      default: break
      }
    }
    return (commits, records)
  }
}
