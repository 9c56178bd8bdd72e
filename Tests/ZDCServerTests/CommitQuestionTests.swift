import Testing
import ZDCProtocol
import ZDCServerMemory

@testable import ZDCServer

/// How often the decision about a commit asks the store: each question is a round trip where the database is another
/// machine.
@Suite struct CommitQuestionTests {
  /// - A commit of 4 puts and 2 deletes, and one of 400 puts and 200 deletes, of nodes that are there and new ones
  /// => both cost the same number of questions
  @Test func questionsDoNotGrowWithTheNodes() async throws {
    let few = try await questions(size: 2)
    let many = try await questions(size: 200)
    #expect(few == many)
    #expect(many <= 20)
  }

  /// - A list that adds 2 members, and one that adds 100; then a put in the zone
  /// => the numbers of questions are the same: a commit reads nothing of the members whom it is announced to
  @Test("P-1, P-3: questions do not grow with the members") func questionsDoNotGrowWithTheMembers() async throws {
    #expect(try await questions(members: 2) == questions(members: 100))
  }

  /// - 2 messages are read from a mailbox, and 100
  /// => both cost the same number of questions, and the messages come in the order asked
  @Test func questionsDoNotGrowWithTheMessages() async throws {
    #expect(try await questions(messages: 2) == questions(messages: 100))
  }

  private func questions(messages count: Int) async throws -> Int {
    let (account, sender) = (try TestAccount(), UserID(randomBytes(32))!)
    let inbox = try #require(account.zones[.inbox]).zone
    return try await MemoryStore().write([.account(account.userID), .zone(inbox)]) { tx in
      let registration = try Accounts.Registration(account.registration())
      _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
      let key = try #require(try tx.zone(inbox)).key
      let envelopes = (0..<count).map { _ in
        MessageEnvelope(
          id: .random(), recipient: account.userID, inbox: inbox.tree, recipientEncGen: 1, sealed: randomBytes(100))
      }
      for envelope in envelopes {
        let row = WaitingMessage(
          cursor: 0, sender: sender, messageID: envelope.id, length: envelope.bytes.count, receivedMs: 1,
          isRequest: false)
        try tx.insertEnvelope(envelope, row: row, in: key)
      }
      let reader = CountingReader(tx)
      let names = ([MessageID.random()] + envelopes.map(\.id)).map { MessageName(sender: sender, id: $0) }
      let bytes = try Inboxes.read(names, inbox.tree, of: account.userID, in: reader)
      #expect(try Inboxes.envelopes(bytes).map(\.id) == envelopes.map(\.id))
      return reader.questions
    }
  }

  private func questions(members count: Int) async throws -> [Int] {
    let account = try TestAccount()
    var home = account.home
    let members = (0..<count).map { _ in home.member(UserID(randomBytes(32))!) }
    let list = try home.list(adding: members.map(\.entry))
    let change = try home.change(to: list, grants: members.map(\.grant))
    home.accepted(change.commit)
    home.acl = list
    let requests = [try CommitRequest(change.body), try CommitRequest(home.put([home.record(.random())]).body)]
    let users = ([account.userID] + members.map(\.entry.user)).map { WriteSubject.account($0) }
    return try await MemoryStore().write(requests[0].subjects.union(users)) { tx in
      let registration = try Accounts.Registration(account.registration())
      _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
      for member in members {
        let id = member.entry.user
        try tx.insertUser(
          UserRow(
            id: id, lookup: .random(), loginKey: [], genesis: LinkHash(reinterpreting: id), linkSeq: 0,
            linkHead: LinkHash(reinterpreting: id), signGen: 1, encGen: 1, createdMs: 1))
      }
      return try requests.map { request in
        let reader = CountingReader(tx)
        let delta = try Self.delta(request, account.userID, reader)
        _ = try tx.apply(delta)
        return reader.questions
      }
    }
  }

  private func questions(size: Int) async throws -> Int {
    let account = try TestAccount()
    let store = MemoryStore()
    var home = account.home
    let old = (0..<2 * size).map { _ in home.record(.random()) }
    let first = try home.put(old)
    home.accepted(first.commit, records: old)
    let contents = (0..<size).map { _ in TestZone.Content() }
    let edits = old.prefix(size).map { home.record($0.fields.node) }
    let new = contents.map { home.record(.random(), parent: old[0].fields.node, content: $0.field()) }
    let deletes = old.suffix(size).map {
      ZoneOperation.delete(node: $0.fields.node, record: $0.hash, liveDescendants: 0)
    }
    let commit = try home.commit((edits + new).map { .put(.init($0)) } + deletes)
    let requests = [
      try CommitRequest(first.body),
      try CommitRequest(TestZone.body(commit, records: edits + new, contents: contents)),
    ]
    return try await store.write(requests[0].subjects.union([.account(account.userID)])) { tx in
      let registration = try Accounts.Registration(account.registration())
      _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
      _ = try tx.apply(try Self.delta(requests[0], account.userID, tx))
      let reader = CountingReader(tx)
      let delta = try Self.delta(requests[1], account.userID, reader)
      #expect((delta.zones[0].puts.count, delta.zones[0].removed.count) == (2 * size, size))
      return reader.questions
    }
  }

  /// - A member asks for 2 records and their content, and for 60; half of the records are replaced ones
  /// => both cost the same number of questions
  @Test func questionsDoNotGrowWithTheNamesThatAreRead() async throws {
    let (few, many) = (try await questions(reading: 2), try await questions(reading: 60))
    #expect(few == many)
  }

  private func questions(reading size: Int) async throws -> [Int] {
    let account = try TestAccount()
    var home = account.home
    let contents = (0..<size).map { _ in TestZone.Content() }
    let old = contents.map { home.record(.random(), content: $0.field()) }
    let first = try home.put(old, contents: contents)
    home.accepted(first.commit, records: old)
    let new = old.prefix(size / 2).map { home.record($0.fields.node) }
    let requests = [try CommitRequest(first.body), try CommitRequest(home.put(new).body)]
    let names = old.map { RecordName(node: $0.fields.node, hash: $0.hash) }
    let zone = home.zone
    return try await MemoryStore().write(requests[0].subjects.union([.account(account.userID)])) { tx in
      let registration = try Accounts.Registration(account.registration())
      _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
      for request in requests { _ = try tx.apply(try Self.delta(request, account.userID, tx)) }
      return try Self.questions(reading: names, contents, of: zone, by: account.userID, in: tx)
    }
  }

  private static func questions(
    reading names: [RecordName], _ contents: [TestZone.Content], of zone: ZoneID, by user: UserID,
    in store: any MetadataReader
  ) throws -> [Int] {
    let readers = (0..<3).map { _ in CountingReader(store) }
    let records = try Zones.records(names, zone: zone, user: user, in: readers[0])
    #expect(try count(records.body) == names.count)
    let asked = zip(names, contents).map { ContentName(node: $0.node, blob: $1.blob) }
    let bytes = try Zones.contents(asked, zone: zone, user: user, in: readers[1])
    #expect(try count(bytes) == names.count)
    let kept = try KeptVersions(zone: zone, user: user, retentionMs: 1_000, in: readers[2]).states(names)
    #expect(kept.count == names.count && kept.allSatisfy { $0.hasRecord })
    return readers.map(\.questions)
  }

  private static func count(_ bundle: [UInt8]) throws -> Int {
    var reader = Bundle.Reader(bundle)
    var count = 0
    while try reader.next() != nil { count += 1 }
    return count
  }

  private static func delta(
    _ request: CommitRequest, _ user: UserID, _ reader: any MetadataReader
  ) throws -> CommitDelta {
    let quotas = Quotas(limit: 1 << 40)
    let work = SubtreeWork(limit: 1_000_000)
    return try CommitDecision(user: user, quotas: quotas, work: work, now: 2, reader: reader).delta(for: request)
  }
}

/// Forwards every question, and counts it.
private final class CountingReader: MetadataReader {
  private let reader: any MetadataReader
  private(set) var questions = 0

  init(_ reader: any MetadataReader) {
    self.reader = reader
  }

  private var asked: any MetadataReader {
    questions += 1
    return reader
  }

  func envelopes(in inbox: ZoneKey, after cursor: UInt64, limit: Int) throws -> [WaitingMessage] {
    try asked.envelopes(in: inbox, after: cursor, limit: limit)
  }
  func envelopeLengths(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws -> [NodeID: Int] {
    try asked.envelopeLengths(ofNodes: nodes, in: inbox)
  }
  func envelopes(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws -> [NodeID: [UInt8]] {
    try asked.envelopes(ofNodes: nodes, in: inbox)
  }
  func zoneCount(of owner: UserID, limit: Int) throws -> Int { try asked.zoneCount(of: owner, limit: limit) }
  func envelope(_ id: MessageID, from sender: UserID, in inbox: ZoneKey) throws -> [UInt8]? {
    try asked.envelope(id, from: sender, in: inbox)
  }
  func inboxUsage(of inbox: ZoneKey, sender: UserID) throws -> InboxUsage {
    try asked.inboxUsage(of: inbox, sender: sender)
  }
  func newestEnvelope(of user: UserID) throws -> UInt64? { try asked.newestEnvelope(of: user) }
  func sender(_ user: UserID, of inbox: ZoneKey) throws -> SenderState { try asked.sender(user, of: inbox) }
  func inboxCounts(of user: UserID) throws -> (envelopes: Int, bytes: UInt64, senders: Int) {
    try asked.inboxCounts(of: user)
  }
  func shares(_ user: UserID, aZoneWith other: UserID) throws -> Bool { try asked.shares(user, aZoneWith: other) }
  func user(_ id: UserID) throws -> UserRow? { try asked.user(id) }
  func users(_ ids: [UserID]) throws -> [UserID: UserRow] { try asked.users(ids) }
  func user(lookup: LookupID) throws -> UserRow? { try asked.user(lookup: lookup) }
  func users(after id: UserID?, limit: Int) throws -> [UserRow] { try asked.users(after: id, limit: limit) }
  func links(of user: UserID) throws -> [[UInt8]] { try asked.links(of: user) }
  func links(after positions: [ChainPosition], limit: Int) throws -> [[UInt8]] {
    try asked.links(after: positions, limit: limit)
  }
  func link(_ seq: UInt32, of user: UserID) throws -> [UInt8]? { try asked.link(seq, of: user) }
  func chainBytes(of user: UserID) throws -> Int { try asked.chainBytes(of: user) }
  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    try asked.signKey(user: user, generation: generation)
  }
  func keyring(of user: UserID) throws -> [UInt8]? { try asked.keyring(of: user) }
  func isInviteUsed(_ codeHash: [UInt8]) throws -> Bool { try asked.isInviteUsed(codeHash) }
  func handles(beginning: String, limit: Int) throws -> [HandleList.Entry] {
    try asked.handles(beginning: beginning, limit: limit)
  }
  func handles(of user: UserID) throws -> [HandleRow] { try asked.handles(of: user) }
  func device(_ id: DeviceID, of user: UserID) throws -> DeviceRow? { try asked.device(id, of: user) }
  func devices(of user: UserID) throws -> [DeviceRow] { try asked.devices(of: user) }
  func session(tokenHash: [UInt8]) throws -> SessionRow? { try asked.session(tokenHash: tokenHash) }
  func sessions(of user: UserID) throws -> [SessionRow] { try asked.sessions(of: user) }
  func zone(_ id: ZoneID) throws -> ZoneRow? { try asked.zone(id) }
  func zones(of user: UserID, since position: FeedPosition?) throws -> ZoneChanges {
    try asked.zones(of: user, since: position)
  }
  func member(_ user: UserID, of zone: ZoneKey) throws -> MemberRow? { try asked.member(user, of: zone) }
  func memberships(of user: UserID) throws -> [MembershipRow] { try asked.memberships(of: user) }
  func membership(of user: UserID, in zone: ZoneKey) throws -> MembershipRow? {
    try asked.membership(of: user, in: zone)
  }
  func memberCounts(of user: UserID, limit: Int) throws -> MemberCounts {
    try asked.memberCounts(of: user, limit: limit)
  }
  func zones(offeredTo user: UserID, after cursor: UInt64, limit: Int) throws -> [OfferedZone] {
    try asked.zones(offeredTo: user, after: cursor, limit: limit)
  }
  func permissions(of user: UserID, in zone: ZoneKey) throws -> ZoneACL.Permissions? {
    try asked.permissions(of: user, in: zone)
  }
  func genesisCommits(owner: UserID, appTreeID: String) throws -> [CommitHash] {
    try asked.genesisCommits(owner: owner, appTreeID: appTreeID)
  }
  func trees(of owner: UserID) throws -> [TreeRow] { try asked.trees(of: owner) }
  func treeID(of zone: ZoneKey) throws -> TreeID? { try asked.treeID(of: zone) }
  func lastReceivedMs() throws -> UInt64? { try asked.lastReceivedMs() }
  func commit(_ seq: UInt64, of zone: ZoneKey) throws -> StoredCommit? { try asked.commit(seq, of: zone) }
  func commits(
    of zone: ZoneKey, after: UInt64?, withRecords: Bool, _ body: (CommitRow) throws -> Bool
  ) throws { try asked.commits(of: zone, after: after, withRecords: withRecords, body) }
  func grant(zone: ZoneKey, user: UserID, hash: GrantHash) throws -> [UInt8]? {
    try asked.grant(zone: zone, user: user, hash: hash)
  }
  func list(before seq: UInt64, of zone: ZoneKey) throws -> [UInt8]? { try asked.list(before: seq, of: zone) }
  func stateBytes(of zone: ZoneKey) throws -> UInt64? { try asked.stateBytes(of: zone) }
  func statePart(_ index: Int, of zone: ZoneKey) throws -> [UInt8]? { try asked.statePart(index, of: zone) }
  func nodes(_ ids: [NodeID], in zone: ZoneKey) throws -> [NodeRow] { try asked.nodes(ids, in: zone) }
  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) throws -> [NodeRow] {
    try asked.children(of: parents, in: zone, limit: limit)
  }
  func leaves(below top: NodeID, in zone: ZoneKey, limit: Int) throws -> [LogNode] {
    try asked.leaves(below: top, in: zone, limit: limit)
  }
  func holders(of names: [NodeName], in zone: ZoneKey) throws -> [NodeName: NodeID] {
    try asked.holders(of: names, in: zone)
  }
  func zone(ofNode node: NodeID, tree: TreeID) throws -> ZoneRow? { try asked.zone(ofNode: node, tree: tree) }
  func zone(of tree: TreeID, where user: UserID, holds permission: ZoneACL.Permissions) throws -> ZoneRow? {
    try asked.zone(of: tree, where: user, holds: permission)
  }
  func records(_ keys: [Int64]) throws -> [Int64: StoredRecord] { try asked.records(keys) }
  func records(
    _ names: [RecordName], in zone: ZoneKey
  ) throws -> [RecordName: Result<StoredRecord, RecordDamaged>] { try asked.records(names, in: zone) }
  func file(_ id: BlobID) throws -> BlobRow? { try asked.file(id) }
  func contents(_ names: [ContentName], in tree: TreeID) throws -> [ContentName: BlobRow] {
    try asked.contents(names, in: tree)
  }
  func blobs(_ keys: [Int64]) throws -> [BlobRow] { try asked.blobs(keys) }
  func inlineBytes(of blobs: [BlobRow]) throws -> [Int64: [UInt8]] { try asked.inlineBytes(of: blobs) }
  func parts(of blob: BlobRow) throws -> [BlobStatus.Part] { try asked.parts(of: blob) }
  func contentBytes(of user: UserID) throws -> UInt64 { try asked.contentBytes(of: user) }
  func recordBytes(of user: UserID) throws -> UInt64 { try asked.recordBytes(of: user) }
  func replacedContents(of user: UserID, bytes: UInt64) throws -> [BlobRow] {
    try asked.replacedContents(of: user, bytes: bytes)
  }
  func usage(of user: UserID) throws -> UsageRow { try asked.usage(of: user) }
}
