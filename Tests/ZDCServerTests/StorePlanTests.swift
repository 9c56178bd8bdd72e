import GRDB
import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerPostgres
@testable import ZDCServerSQLite

/// No statement of the requests that devices send every day reads a whole table.
@Suite(.needsFolder) struct StorePlanTests {
  private typealias Operation = (name: String, run: @Sendable (any MetadataTransaction) throws -> Void)

  /// An account with a row in every table that grows.
  private struct World {
    var splits: StoreSplitTests.World
    let content = TestZone.Content()
    let file: NodeRecord
    let branch: ZoneID
    let blob = BlobID.random()
    let device = DeviceRow(id: .random(), key: [1], createdMs: 1)
    let friend = StoreContractTests.user(1)

    init(_ store: any MetadataStore) async throws {
      splits = try await StoreSplitTests.World(store, branch: 6)
      file = splits.home.record(.random(), content: content.field())
      try await splits.put([file], contents: [content])
      try await splits.put([splits.home.record(file.fields.node, content: file.fields.content)])
      branch = try await splits.split().zone
      try await fill(store)
    }

    var user: UserID { splits.account.userID }
    var home: ZoneID { splits.home.zone }
    var inbox: ZoneID { get throws { try #require(splits.account.zones[.inbox]).zone } }

    var subjects: Set<WriteSubject> {
      get throws {
        [.account(user), .account(friend.id), .zone(home), .zone(branch), .zone(try inbox), .upload(blob), .upkeep]
      }
    }

    private func fill(_ store: any MetadataStore) async throws {
      let inbox = try inbox
      try await store.write(try subjects) { tx in
        try tx.insertUser(friend)
        try tx.putMembership(of: friend.id, in: try #require(try tx.zone(home)).key, now: 5)
        try tx.putDevice(device, of: user)
        try tx.insertSession(
          SessionRow(tokenHash: [1], user: user, device: device.id, createdMs: 5, expiresMs: 1 << 40))
        try tx.useInvite([1], user: user, now: 5)
        #expect(try tx.setHandle(Handle("alice"), of: user, now: 5, freeBefore: 0))
        try tx.setSender(friend.id, to: .hasWritten, of: try #require(try tx.zone(inbox)).key)
        try insertMessage(tx, isRequest: true)
        try insertUpload(tx)
      }
    }

    func insertMessage(_ tx: any MetadataTransaction, isRequest: Bool) throws {
      let envelope = MessageEnvelope(
        id: .random(), recipient: user, inbox: try inbox.tree, recipientEncGen: 1, sealed: randomBytes(100))
      let row = WaitingMessage(
        cursor: 0, sender: friend.id, messageID: envelope.id, length: envelope.bytes.count, receivedMs: 1 << 40,
        isRequest: isRequest)
      try tx.insertEnvelope(envelope, row: row, in: try #require(try tx.zone(inbox)).key)
    }

    func insertUpload(_ tx: any MetadataTransaction) throws {
      var row = BlobRow(
        id: blob, zone: try #require(try tx.zone(home)).key, node: .random(), cipherLength: 100_000,
        state: .receiving, isInline: false, owner: user, contentRoot: .random(), touchedMs: 1 << 40)
      row.key = try tx.insertTicket(row)
      try tx.insertPart(0, hash: [UInt8](repeating: 1, count: 32), of: row, now: 5)
    }

    func key(_ zone: ZoneID, _ reader: any MetadataReader) throws -> ZoneKey { try #require(try reader.zone(zone)).key }
  }

  /// Every request reads or writes by these functions.
  private static func operations(_ world: World) throws -> [Operation] {
    [
      ("login", { try logIn(world, $0) }), ("identities", { try readIdentities(world, $0) }),
      ("list of zones", { try listZones(world, $0) }), ("page", { try readPage(world, $0) }),
      ("nodes", { try readNodes(world, $0) }), ("content", { try readContent(world, $0) }),
      ("quota", { try readSums(world, $0) }), ("messages", { try exchangeMessages(world, $0) }),
      ("upload", { try upload(world, $0) }), ("upkeep", { try keepUp($0) }),
    ]
  }

  private static func logIn(_ world: World, _ tx: any MetadataTransaction) throws {
    #expect(try tx.user(lookup: world.splits.account.lookupID) != nil)
    #expect(try tx.device(world.device.id, of: world.user) != nil && tx.devices(of: world.user).count == 1)
    #expect(try tx.session(tokenHash: [1]) != nil && !tx.sessions(of: world.user).isEmpty)
    try tx.putDevice(world.device, of: world.user)
    let session = SessionRow(
      tokenHash: randomBytes(32), user: world.user, device: world.device.id, createdMs: 4, expiresMs: 1 << 39)
    try tx.insertSession(session)
    _ = try tx.trimSessions(of: world.user, device: world.device.id, keeping: 1)
    _ = try tx.trimDevices(of: world.user, keeping: 0)
    try tx.putDevice(world.device, of: world.user)
    try tx.insertSession(
      SessionRow(tokenHash: [1], user: world.user, device: world.device.id, createdMs: 5, expiresMs: 1 << 40))
  }

  private static func readIdentities(_ world: World, _ tx: any MetadataTransaction) throws {
    let users = [world.user, world.friend.id]
    #expect(try tx.users(users).count == 2 && !tx.users(after: nil, limit: 10).isEmpty)
    _ = try tx.links(after: users.map { ChainPosition(user: $0, count: 0) }, limit: 1 << 20)
    #expect(try tx.link(0, of: world.user) != nil && tx.chainBytes(of: world.user) > 0)
    #expect(try tx.signKey(user: world.user, generation: 1) != nil && tx.keyring(of: world.user) != nil)
    #expect(try tx.isInviteUsed([1]) && tx.handles(of: world.user).count == 1)
    #expect(try tx.handles(beginning: "alice", limit: 9).count == 1)
    _ = try tx.setHandle(Handle("alice"), of: world.user, now: 5, freeBefore: 0)
  }

  private static func listZones(_ world: World, _ tx: any MetadataTransaction) throws {
    let all = try tx.zones(of: world.user, since: nil)
    #expect(all.own.count == 5)
    #expect(try tx.zones(of: world.user, since: all.position).own.isEmpty)
    #expect(try tx.zones(of: world.friend.id, since: nil).own.isEmpty)
    #expect(try tx.memberships(of: world.friend.id).count == 1)
    _ = try tx.zones(offeredTo: world.friend.id, after: 0, limit: 100)
    _ = try tx.memberCounts(of: world.user, limit: 1_000)
    #expect(try tx.trees(of: world.user).count == 4 && tx.zoneCount(of: world.user, limit: 100) == 5)
    #expect(try tx.genesisCommits(owner: world.user, appTreeID: TestAccount.app).count == 4)
  }

  private static func readPage(_ world: World, _ tx: any MetadataTransaction) throws {
    let (home, branch) = (try world.key(world.home, tx), try world.key(world.branch, tx))
    for zone in [home, branch] {
      var count = 0
      try tx.commits(of: zone, after: nil, withRecords: true) { row in
        count += row.records.count + 1
        return true
      }
      #expect(count > 0)
    }
    #expect(try tx.member(world.user, of: home) != nil && tx.membership(of: world.friend.id, in: home) != nil)
    #expect(try tx.permissions(of: world.user, in: home) != nil && tx.commit(1, of: home) != nil)
    #expect(try tx.list(before: 2, of: home) != nil && tx.treeID(of: home) != nil)
    #expect(try tx.stateBytes(of: branch) != nil && tx.statePart(0, of: branch) != nil)
    _ = try tx.grant(zone: home, user: world.user, hash: .random())
  }

  private static func readNodes(_ world: World, _ tx: any MetadataTransaction) throws {
    let (home, node) = (try world.key(world.home, tx), world.file.fields.node)
    let found = try tx.nodes([node], in: home)
    #expect(found.count == 2)
    #expect(try !tx.children(of: [world.home.root], in: home, limit: 10).isEmpty)
    #expect(try !tx.leaves(below: world.home.root, in: home, limit: 10).isEmpty)
    #expect(try tx.zone(ofNode: node, tree: world.home.tree) != nil)
    #expect(try tx.zone(of: world.home.tree, where: world.user, holds: .write) != nil)
    let names = found.compactMap { row in row.tag.map { NodeName(parent: row.leaf.parent, tag: $0) } }
    #expect(try tx.holders(of: names, in: home).count == 1)
    #expect(try tx.records(found.map(\.record)).count == 2)
    let live = found.map { RecordName(node: $0.leaf.node, hash: $0.leaf.record) }
    #expect(try tx.records(live + [RecordName(node: node, hash: world.file.hash)], in: home).count == 3)
  }

  private static func readContent(_ world: World, _ tx: any MetadataTransaction) throws {
    let name = ContentName(node: world.file.fields.node, blob: world.content.blob)
    let row = try #require(try tx.contents([name], in: world.home.tree)[name])
    #expect(try tx.inlineBytes(of: row) != nil && tx.blobs([row.key]).count == 1)
    let ticket = try #require(try tx.file(world.blob))
    #expect(try tx.parts(of: ticket).count == 1)
  }

  private static func readSums(_ world: World, _ tx: any MetadataTransaction) throws {
    #expect(try tx.contentBytes(of: world.user) > 0 && tx.recordBytes(of: world.user) > 0)
    #expect(try tx.usage(of: world.user).liveNodes > 0)
    _ = try tx.replacedContents(of: world.user, bytes: 1 << 20)
  }

  private static func exchangeMessages(_ world: World, _ tx: any MetadataTransaction) throws {
    let inbox = try world.key(world.inbox, tx)
    try world.insertMessage(tx, isRequest: false)
    let rows = try tx.envelopes(in: inbox, after: 0, limit: 10)
    let last = try #require(rows.last)
    let node = NodeID(message: last.messageID, from: last.sender)
    #expect(try tx.envelope(last.messageID, from: last.sender, in: inbox) != nil)
    #expect(try tx.envelopes(ofNodes: [node], in: inbox).count == 1)
    #expect(try tx.envelopeLengths(ofNodes: [node], in: inbox).count == 1)
    #expect(try tx.inboxUsage(of: inbox, sender: last.sender).all.count == rows.count)
    #expect(try tx.newestEnvelope(of: world.user) == last.cursor && tx.sender(last.sender, of: inbox) != [])
    #expect(try tx.inboxCounts(of: world.user).envelopes == rows.count)
    _ = try tx.shares(world.user, aZoneWith: world.friend.id)
    try tx.removeEnvelopes(ofNodes: [node], in: inbox)
    try tx.setSender(last.sender, to: [.hasWritten, .accepted], of: inbox)
  }

  private static func upload(_ world: World, _ tx: any MetadataTransaction) throws {
    var ticket = try #require(try tx.file(world.blob))
    ticket.state = .complete
    try tx.updateTicket(ticket)
    try tx.removeBlobs([ticket])
    try world.insertUpload(tx)
  }

  private static func keepUp(_ tx: any MetadataTransaction) throws {
    #expect(try !tx.collect(replacedBefore: 1, abandonedBefore: 1, limit: 100).isMore)
    #expect(try !tx.removeRequests(receivedBefore: 1, limit: 100) && !tx.removeClosedNodes(limit: 100))
    #expect(try !tx.removeClosedAccounts(closedBefore: 1, limit: 100).isMore)
    try tx.removeExpiredSessions(now: 1)
    #expect(try tx.lastReceivedMs() != nil)
  }

  // MARK: - PostgreSQL

  /// Each table has so many rows of other users: every index has more pages than a request may read.
  private static let rows = 40_000
  private static let pages = 90

  /// => each request reads few pages of every table and index. The store's connections avoid sequential scans; a
  /// statement without a fitting index would read a whole index instead.
  @Test func noTableOfPostgreSQLIsReadWhole() async throws {
    let server = try TestPostgres.shared()
    let url = try server.newDatabase()
    let small = try PostgresStore(url: url, connections: 2)
    var world = try await World(small)
    try await small.close()
    let filled = try Self.fill(PostgresConnection(url))
    #expect(filled.count >= 20, "\(filled)")
    let store = try PostgresStore(url: url, connections: 1)
    world.splits.store = store
    for operation in try Self.operations(world) {
      let read = try await Self.pagesRead(store) { [world] in try await store.write(try world.subjects, operation.run) }
      #expect(read.allSatisfy { $0.value < Self.pages }, "\(operation.name): \(read)")
    }
    for (name, body) in try Self.commits(&world) {
      let read = try await Self.pagesRead(store) { [world] in try await world.splits.apply(body) }
      #expect(read.allSatisfy { $0.value < Self.pages }, "\(name): \(read)")
    }
    try await store.close()
    try server.remove(url)
  }

  /// - So many accounts were closed, and their data removed
  /// => upkeep does not look at them again
  @Test func removedAccountsOfPostgreSQLAreNotReadAgain() async throws {
    let server = try TestPostgres.shared()
    let url = try server.newDatabase()
    let store = try PostgresStore(url: url, connections: 1)
    _ = try await World(store)
    let db = try PostgresConnection(url)
    try db.run("UPDATE users SET closed_ms = 1, keyring = NULL")
    #expect(try Self.fill(db).contains("users"))
    let read = try await Self.pagesRead(store) {
      let isMore = try await store.write([.upkeep]) {
        try $0.removeClosedAccounts(closedBefore: 1 << 40, limit: 100).isMore
      }
      #expect(!isMore)
    }
    #expect(read.allSatisfy { $0.value < Self.pages }, "\(read)")
    try await store.close()
    try server.remove(url)
  }

  /// Returns commits that put three nodes with content, edit them and delete them.
  private static func commits(_ world: inout World) throws -> [(name: String, body: [UInt8])] {
    let contents = (0..<3).map { _ in TestZone.Content() }
    let records = contents.map { world.splits.home.record(.random(), content: $0.field()) }
    let put = try world.splits.home.put(records, contents: contents)
    world.splits.home.accepted(put.commit, records: records)
    let edited = records.map { world.splits.home.record($0.fields.node, content: $0.fields.content) }
    let edit = try world.splits.home.put(edited)
    world.splits.home.accepted(edit.commit, records: edited)
    let delete = try world.splits.home.commit(
      edited.map { .delete(node: $0.fields.node, record: $0.hash, liveDescendants: 0) })
    world.splits.home.accepted(delete)
    return [("a put", put.body), ("an edit", edit.body), ("a delete", TestZone.body(delete))]
  }

  /// Returns how many pages were read in the meantime, by table and index.
  private static func pagesRead(_ store: PostgresStore, _ body: () async throws -> Void) async throws -> [String: Int64]
  {
    let before = try await pagesRead(store)
    try await body()
    let after = try await pagesRead(store)
    return after.merging(before) { $0 - $1 }.filter { $0.value > 0 }
  }

  /// The same connection reports its own counts first.
  private static func pagesRead(_ store: PostgresStore) async throws -> [String: Int64] {
    try await store.perform { _ = try $0.run("SELECT pg_stat_force_next_flush()") }
    return try await store.perform { db in
      let rows = try db.all(
        """
        SELECT relname::text, heap_blks_read + heap_blks_hit FROM pg_statio_user_tables
        UNION ALL SELECT indexrelname::text, idx_blks_read + idx_blks_hit FROM pg_statio_user_indexes
        """
      ) { ($0.text(0), $0.int(1)) }
      return Dictionary(rows) { $0 + $1 }
    }
  }

  /// Copies a row of each table, with other values in all indexes. Returns the tables.
  private static func fill(_ db: PostgresConnection) throws -> [String] {
    let columns = try db.all(
      """
      SELECT c.relname::text, quote_ident(a.attname)::text, format_type(a.atttypid, NULL)::text, EXISTS (
        SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY (i.indkey))::int
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY c.relname, a.attnum
      """
    ) { (table: $0.text(0), name: $0.text(1), type: $0.text(2), isIndexed: $0.int(3) != 0) }
    var filled: [String] = []
    for (table, columns) in Dictionary(grouping: columns, by: \.table) where columns.contains(where: \.isIndexed) {
      // Its reads would be counted as well.
      try db.run("ALTER TABLE \(table) SET (autovacuum_enabled = false)")
      let values = columns.map { $0.isIndexed ? other($0.name, $0.type) : "t.\($0.name)" }
      let inserted = try db.run(
        """
        INSERT INTO \(table)(\(columns.map(\.name).joined(separator: ", "))) OVERRIDING SYSTEM VALUE
        SELECT \(values.joined(separator: ", ")) FROM (SELECT * FROM \(table) LIMIT 1) t, generate_series(1, \(rows)) n
        ON CONFLICT DO NOTHING
        """)
      if inserted == rows { filled.append(table) }
    }
    try db.run("ANALYZE")
    return filled
  }

  private static func other(_ name: String, _ type: String) -> String {
    switch type {
    case "integer", "bigint": "t.\(name) - t.\(name) + 1000000 + n"
    case "bytea": "substr(sha256(convert_to('\(name)' || n, 'UTF8')), 1, greatest(length(t.\(name)), 16))"
    case "text": "t.\(name) || n"
    default: "t.\(name)"
    }
  }

  // MARK: - SQLite

  /// Tables of a few rows.
  private static let allowed: Set = ["closing", "room", "era", "removed_positions"]

  @Test func noTableOfSQLiteIsReadWhole() async throws {
    try await StoreContractTests.withStore(StoreContractTests.stores[0]) { store in
      let world = try await World(store)
      for operation in try Self.operations(world) {
        let scans = try await store.write([]) { tx in
          let db = try #require(tx as? SQLiteTransaction).db
          let statements = try Self.statements(db) { try operation.run(tx) }
          #expect(!statements.isEmpty)
          return try statements.flatMap { sql in try Self.scans(sql, db).map { "\($0): \(sql)" } }
        }
        #expect(scans == [], "\(operation.name)")
      }
    }
  }

  @Test func removedAccountsOfSQLiteAreNotReadAgain() async throws {
    try await StoreContractTests.withStore(StoreContractTests.stores[0]) { store in
      let steps = try await store.write([]) { tx in
        let db = try #require(tx as? SQLiteTransaction).db
        try db.execute(
          sql: """
            WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)
            INSERT INTO users(
              user_id, lookup_id, login_key, genesis, link_seq, link_head, sign_gen, enc_gen, created_ms, closed_ms)
            SELECT randomblob(32), randomblob(16), x'', x'', 0, x'', 1, 1, 1, n FROM n
            """)
        return try SQLiteWork.counted(db) { try tx.removeClosedAccounts(closedBefore: 1 << 40, limit: 100) }.steps
      }
      #expect(steps < 500)
    }
  }

  private static func statements(_ db: Database, of body: () throws -> Void) throws -> Set<String> {
    let all = Mutex<Set<String>>([])
    db.trace { event in
      // The parts of a trigger come as comments.
      guard case .statement(let statement) = event, !statement.sql.hasPrefix("--") else { return }
      all.withLock { _ = $0.insert(statement.sql) }
    }
    defer { db.trace(nil) }
    try body()
    return all.withLock { $0 }
  }

  /// The tables that a statement reads from their beginning to their end.
  private static func scans(_ sql: String, _ db: Database) throws -> [String] {
    let plan = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
    plan.setUncheckedArguments([])
    return try Row.fetchAll(plan).compactMap { row in
      let words = (row["detail"] as String).split(separator: " ").map(String.init)
      // The last row of the table.
      if sql.hasSuffix("ORDER BY feed_position DESC LIMIT 1") { return nil }
      guard words.count >= 2, words[0] == "SCAN", !words[1].hasPrefix("("), words[1] != "CONSTANT" else { return nil }
      return allowed.contains(words[1]) || words.contains("VIRTUAL") ? nil : words.joined(separator: " ")
    }
  }
}
