import Testing
import ZDCProtocol

@testable import ZDCServer

/// How every metadata store applies commits: the second half of ``StoreContractTests``.
@Suite struct StoreCommitTests {
  typealias Maker = StoreContractTests.Maker
  static let stores = StoreContractTests.stores

  /// A store with one account, and its home as the tests change it.
  final class World: Sendable {
    let store: any MetadataStore
    let account: TestAccount

    init(_ store: any MetadataStore, _ account: TestAccount) async throws {
      self.store = store
      self.account = account
      try await store.write([.account(account.userID)]) { tx in
        let registration = try Accounts.Registration(account.registration())
        _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
      }
    }

    var zone: ZoneID { account.home.zone }

    /// Reads, decides and applies in one write.
    @discardableResult
    func commit(
      at now: UInt64 = 10, attaching upload: BlobID? = nil,
      _ change: @escaping @Sendable (any MetadataReader, ZoneRow, inout ZoneDelta) throws -> Void
    ) async throws -> ZoneStatus {
      let (home, zone, user) = (account.home, zone, account.userID)
      let subjects = Set([.zone(zone)] + (upload.map { [.upload($0)] } ?? []) as [WriteSubject])
      return try await store.write(subjects) { tx in
        let before = try Self.answers(tx, zone, user)
        try tx.prefetchCommits(of: user, to: [zone])
        #expect(try Self.answers(tx, zone, user) == before)
        let row = try #require(try tx.zone(zone))
        let head = ZoneHead(
          zone: zone, seq: row.seq + 1, hash: .random(), acl: home.acl, retiredBelow: row.retiredBelow)
        var delta = ZoneDelta(
          target: .existing(row.key), head: head, commit: try home.commit([]), receivedMs: now)
        try change(tx, row, &delta)
        delta.commit = try home.commit(delta.puts.map { .put(Self.operation($0.leaf)) }).bytes
        for put in delta.puts { delta.usage.count(record: put.record.bytes) }
        let status = try #require(try tx.apply(CommitDelta(zones: [delta])).first)
        #expect(try tx.zone(zone)?.status == status)
        return status
      }
    }

    /// The rows that a decision about a commit reads.
    private static func answers(_ reader: any MetadataReader, _ zone: ZoneID, _ user: UserID) throws -> String {
      let row = try #require(try reader.zone(zone))
      let writer = try #require(try reader.user(user))
      let key = try reader.signKey(user: user, generation: writer.signGen)
      return "\(row) \(writer) \(key ?? []) \(String(describing: try reader.member(user, of: row.key)))"
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader, ZoneKey) throws -> T) async throws -> T {
      let zone = zone
      return try await store.read { reader in try body(reader, try #require(try reader.zone(zone)).key) }
    }

    static func operation(_ leaf: LogNode) -> ZoneOperation.Put {
      ZoneOperation.Put(
        node: leaf.node, parent: leaf.parent, record: leaf.record, keyGen: leaf.keyGen, parentKeyGen: leaf.parentKeyGen)
    }

    /// A node with a distinct record, and small content of that many bytes, 136 at least.
    func put(
      _ node: NodeID, below parent: NodeID? = nil, tag: NameTag = .random(), bytes: Int = 0, seq: UInt64 = 1,
      replacing old: NodeRow? = nil, naming kept: NodeRecord.Content? = nil
    ) -> NodePut {
      let content = bytes == 0 ? nil : TestZone.Content(bytes)
      let record = account.home.record(node, parent: parent, tag: tag, content: content?.field() ?? kept)
      let leaf = LogNode(
        node: node, parent: parent ?? zone.root, record: record.hash, putSeq: seq, keyGen: 1, parentKeyGen: 1)
      let stored = StoredRecord(bytes: record.bytes, recordReceivedMs: seq, dataReceivedMs: seq)
      return NodePut(
        leaf: leaf, tag: tag, record: stored, content: content.map { .inline($0.blob, $0.bytes[...]) } ?? .none,
        replaced: old)
    }
  }

  private func withWorld(_ maker: Maker, _ body: @Sendable (World) async throws -> Void) async throws {
    try await StoreContractTests.withStore(maker) { store in
      try await body(try await World(store, try TestAccount()))
    }
  }

  @Test(arguments: stores) func nodesAreFoundWithAllAbove_andChildrenUpToALimit(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (a, b, c) = (NodeID.random(), NodeID.random(), NodeID.random())
      let puts = [world.put(a), world.put(b, below: a), world.put(c, below: b)]
      try await world.commit { _, _, delta in
        delta.puts = puts
        delta.puts += (0..<5).map { _ in world.put(.random(), below: a) }
      }
      try await world.read { reader, zone throws in
        #expect(try Self.live(zone, in: reader).prefix(3).map(\.bytes) == puts.map(\.record.bytes))
        let found = try reader.nodes([c, .random(), b], in: zone).map(\.leaf.node)
        #expect(Set(found) == [a, b, c, world.zone.root] && found.count == 4)
        #expect(try reader.children(of: [a], in: zone, limit: 3).count == 3)
        #expect(try reader.children(of: [c, b, a], in: zone, limit: 100).count == 7)
        #expect(try reader.children(of: [a], in: zone, limit: 100).allSatisfy { $0.leaf.parent == a })
        #expect(try reader.zone(ofNode: c, tree: world.zone.tree)?.zone == world.zone)
      }
    }
  }

  /// - A second zone begins in home's tree; its list names a friend who may write
  /// => each zone has its own nodes, and refuses those of the other; the friend's zone of the tree is the second one
  @Test(arguments: stores) func aZoneBeginsInATreeThatExists(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let home = world.account.home
      let child = try TestZone(
        owner: home.owner, signKey: home.signKey, trunk: .home, app: home.acl.fields.appTreeID, root: .random())
      let friend = UserID(1, 2, 3, 4)
      let list = try child.list(adding: [child.member(friend, [.read, .write]).entry])
      try await world.store.write([.zone(child.zone)]) { tx in
        _ = try tx.apply(CommitDelta(zones: [try Self.genesis(of: child, list: list)]))
      }
      try await world.read { reader, trunk throws in
        let zone = try #require(try reader.zone(child.zone))
        #expect(zone.key != trunk && zone.head == child.headHash)
        #expect(try reader.nodes([child.zone.root], in: zone.key).count == 1)
        let foreign = ZDCSecurityError(.recordBindingMismatch, node: child.zone.root)
        #expect(throws: foreign) { try reader.nodes([child.zone.root], in: trunk) }
        let tree = child.zone.tree
        #expect(try reader.zone(ofNode: child.zone.root, tree: tree)?.zone == child.zone)
        #expect(try reader.zone(of: tree, where: friend, holds: .write)?.zone == child.zone)
        #expect(try reader.zone(of: tree, where: friend, holds: .share) == nil)
        #expect(try reader.zone(of: tree, where: home.owner, holds: .write)?.zone == home.zone)
        #expect(try reader.zones(of: home.owner, since: nil).own.map(\.zone).contains(child.zone))
      }
    }
  }

  private static func genesis(of zone: TestZone, list: ZoneACL) throws -> ZoneDelta {
    var reader = Bundle.Reader(zone.birth)
    let items = try reader.all()
    guard case .record(_, _, let root)? = items.first, case .commit(_, let commit)? = items.last else {
      throw ServerError(.invalidRequest, "not the birth of a zone")
    }
    let head = ZoneHead(zone: zone.zone, seq: 0, hash: commit.hash, acl: list)
    var delta = ZoneDelta(target: .newZone(owner: zone.owner), head: head, commit: commit, receivedMs: 5)
    delta.change(to: ZoneDelta.ListChange(acl: list, grants: []))
    let leaf = LogNode(
      node: root.fields.node, parent: .zero, record: root.hash, putSeq: 0, keyGen: 1, parentKeyGen: 0)
    let stored = StoredRecord(bytes: root.bytes, recordReceivedMs: 5, dataReceivedMs: 0)
    delta.puts = [NodePut(leaf: leaf, tag: nil, record: stored, content: .none, replaced: nil)]
    delta.usage.count(record: root.bytes)
    return delta
  }

  /// - Two nodes swap their names in one commit, then one is deleted and a third takes its name
  @Test(arguments: stores) func namesAreThoseOfTheLastCommit(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (a, b, c) = (NodeID.random(), NodeID.random(), NodeID.random())
      let (first, second) = (NameTag.random(), NameTag.random())
      let root = world.zone.root
      let names = [NodeName(parent: root, tag: first), NodeName(parent: root, tag: second)]
      try await world.commit { _, _, delta in
        delta.puts = [world.put(a, tag: first), world.put(b, tag: second)]
      }
      try await world.commit { reader, zone, delta throws in
        #expect(try reader.holders(of: names, in: zone.key) == [names[0]: a, names[1]: b])
        let known = try reader.nodes([a, b], in: zone.key)
        delta.puts = [
          world.put(a, tag: second, replacing: known.first { $0.leaf.node == a }),
          world.put(b, tag: first, replacing: known.first { $0.leaf.node == b }),
        ]
      }
      try await world.commit { reader, zone, delta throws in
        #expect(try reader.holders(of: names, in: zone.key) == [names[0]: b, names[1]: a])
        delta.removed = try reader.nodes([a], in: zone.key).filter { $0.leaf.node == a }
        delta.puts = [world.put(c, tag: second)]
      }
      try await world.read { reader, zone throws in
        #expect(try reader.holders(of: names, in: zone) == [names[0]: b, names[1]: c])
      }
    }
  }

  /// - A node with content is put, put again with another content, and deleted
  /// => each record and content that is replaced is still found, and is collected once it is old enough
  @Test(arguments: stores) func replacedContentIsKeptForTheRetentionPeriod(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let node = NodeID.random()
      try await world.commit(at: 10) { _, _, delta in delta.puts = [world.put(node, bytes: 200)] }
      try await world.commit(at: 20) { reader, zone, delta in
        let known = try reader.nodes([node], in: zone.key).first { $0.leaf.node == node }
        delta.puts = [world.put(node, bytes: 300, seq: 2, replacing: known)]
      }
      try await world.commit(at: 30) { reader, zone, delta in
        delta.removed = try reader.nodes([node], in: zone.key).filter { $0.leaf.node == node }
      }
      try await world.read { reader, zone throws in
        #expect(try reader.nodes([node], in: zone).isEmpty)
        #expect(try Self.live(zone, in: reader).isEmpty)
        let all = try reader.replacedContents(of: world.account.userID, bytes: .max)
        #expect(all.map(\.cipherLength) == [200, 300] && all.allSatisfy(\.isInline))
        #expect(try reader.replacedContents(of: world.account.userID, bytes: 200).map(\.cipherLength) == [200])
        #expect(try reader.replacedContents(of: world.account.userID, bytes: 201).map(\.cipherLength) == [200, 300])
        #expect(try reader.contentBytes(of: world.account.userID) == 500)
        let names = all.map { ContentName(node: node, blob: $0.id) }
        #expect(try reader.contents(names, in: world.zone.tree).count == 2)
        #expect(try all.map { try reader.inlineBytes(of: $0)?.count } == [200, 300])
        let strange = ContentName(node: .random(), blob: names[0].blob)
        #expect(try reader.contents([strange], in: world.zone.tree).isEmpty)
      }
      let left = try await world.store.write([.upkeep]) { tx in
        let step = try tx.collect(replacedBefore: 25, abandonedBefore: 0, limit: 100)
        return (step.files.count, step.isMore, try tx.usage(of: world.account.userID))
      }
      #expect((left.0, left.1) == (0, false))
      #expect((left.2.blobs, left.2.contentBytes, left.2.records) == (1, 300, 5))
    }
  }

  /// The live records of the commits after the trunk's first.
  private static func live(_ zone: ZoneKey, in reader: any MetadataReader) throws -> [StoredRecord] {
    var records: [StoredRecord] = []
    try reader.commits(of: zone, after: 0, withRecords: true) { row in
      records += row.records
      return true
    }
    return records
  }

  /// - One commit puts a node again, and another one below it, and deletes both
  @Test(arguments: stores) func aPutAndDeleteInOneCommit_leavesRecordsOnly(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (a, b) = (NodeID.random(), NodeID.random())
      let tag = NameTag.random()
      try await world.commit { _, _, delta in delta.puts = [world.put(a, tag: tag)] }
      try await world.commit { reader, zone, delta throws in
        let known = try #require(try reader.nodes([a], in: zone.key).first { $0.leaf.node == a })
        delta.puts = [
          world.put(a, tag: tag, seq: 2, replacing: known), world.put(b, below: a, bytes: 150, seq: 2),
        ]
        for index in delta.puts.indices { delta.puts[index].isLive = false }
        delta.removed = [known]
      }
      try await world.read { reader, zone throws in
        #expect(try reader.nodes([a, b], in: zone).isEmpty)
        #expect(try reader.children(of: [world.zone.root, a], in: zone, limit: 9).isEmpty)
        #expect(try reader.holders(of: [NodeName(parent: world.zone.root, tag: tag)], in: zone).isEmpty)
        #expect(try Self.live(zone, in: reader).isEmpty)
        #expect(try reader.replacedContents(of: world.account.userID, bytes: .max).map(\.node) == [b])
      }
    }
  }

  /// - A folder is deleted with a node below it that has content; the same commit puts the node elsewhere, with a name
  ///   that the folder had
  /// => the node keeps its content, its old record is kept, and nothing else is left of the folder
  @Test(arguments: stores) func aNodeThatLeavesADeletedFolder_keepsItsContent(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (folder, node) = (NodeID.random(), NodeID.random())
      let name = NameTag.random()
      let first = world.put(node, below: folder, bytes: 200)
      try await world.commit { _, _, delta in delta.puts = [world.put(folder, tag: name), first] }
      let blob = try await world.read { reader, zone in
        let row = try #require(try reader.nodes([node], in: zone).first { $0.leaf.node == node })
        let key = try #require(row.blob)
        return try #require(try reader.blobs([key]).first)
      }
      #expect(blob.node == node && blob.cipherLength == 200)
      let bytes = try await world.store.read { try $0.inlineBytes(of: blob) }
      try await world.commit(at: 20) { reader, zone, delta throws in
        let named = try NodeRecord(first.record.bytes).fields.content
        var put = world.put(node, tag: name, seq: 2, naming: named)
        put.content = .attached(blob)
        delta.puts = [put]
        delta.removed = try reader.nodes([node], in: zone.key).filter { $0.leaf.node != world.zone.root }
      }
      try await world.read { reader, zone throws in
        let rows = try reader.nodes([node, folder], in: zone)
        #expect(Set(rows.map(\.leaf.node)) == [node, world.zone.root])
        let row = try #require(rows.first { $0.leaf.node == node })
        let key = try #require(row.blob)
        let kept = try #require(try reader.blobs([key]).first)
        #expect(try reader.inlineBytes(of: kept) == bytes)
        #expect(try reader.replacedContents(of: world.account.userID, bytes: .max).isEmpty)
        #expect(try reader.contentBytes(of: world.account.userID) == 200)
        #expect(
          try reader.record(RecordName(node: node, hash: first.leaf.record), in: zone)?.bytes == first.record.bytes)
        #expect(try reader.holders(of: [NodeName(parent: world.zone.root, tag: name)], in: zone).values.first == node)
      }
    }
  }

  /// - A node is moved out of a folder that the same commit deletes
  @Test(arguments: stores) func aNodeLeavesAFolderThatIsDeleted(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (folder, node) = (NodeID.random(), NodeID.random())
      let tag = NameTag.random()
      let first = world.put(node, below: folder, tag: tag, bytes: 200)
      try await world.commit { _, _, delta in delta.puts = [world.put(folder), first] }
      try await world.commit { reader, zone, delta throws in
        let known = try reader.nodes([node], in: zone.key)
        let named = try NodeRecord(first.record.bytes).fields.content
        var put = world.put(node, tag: tag, seq: 2, replacing: known.first { $0.leaf.node == node }, naming: named)
        put.content = .unchanged(try #require(put.replaced?.blob))
        delta.puts = [put]
        delta.removed = known.filter { $0.leaf.node == folder }
      }
      try await world.read { reader, zone throws in
        let rows = try reader.nodes([node], in: zone)
        #expect(rows.map(\.leaf.parent) == [world.zone.root, .zero])
        #expect(try reader.blobs(rows.compactMap(\.blob)).map(\.cipherLength) == [200])
        #expect(try reader.children(of: [world.zone.root], in: zone, limit: 9).map(\.leaf.node) == [node])
      }
    }
  }

  /// - An upload is named by a put, and what a record names stays while the node is put again
  @Test(arguments: stores) func uploadsAreAttached_andStayWithTheirNodes(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let node = NodeID.random()
      let blob = BlobID.random()
      let user = world.account.userID
      let ticket = try await world.store.write([.upload(blob)]) { tx in
        let zone = try #require(try tx.zone(world.zone)).key
        var row = BlobRow(
          id: blob, zone: zone, node: node, cipherLength: 100_000, state: .complete, isInline: false, owner: user,
          contentRoot: .random(), touchedMs: 5)
        row.key = try tx.insertTicket(row)
        try tx.insertPart(0, hash: [1], of: row, now: 5)
        #expect(try tx.parts(of: row).map(\.index) == [0])
        return try #require(try tx.file(blob))
      }
      try await world.read { reader, _ throws in
        #expect(try reader.usage(of: user).uploadBytes == 100_000)
        #expect(try reader.contentBytes(of: user) == 100_000)
      }
      try await world.commit(attaching: blob) { _, _, delta in
        var put = world.put(node)
        put.content = .attached(ticket)
        delta.puts = [put]
      }
      try await world.commit { reader, zone, delta throws in
        let known = try #require(try reader.nodes([node], in: zone.key).first { $0.leaf.node == node })
        #expect(known.blob == ticket.key)
        var put = world.put(node, seq: 2, replacing: known)
        put.content = .unchanged(ticket.key)
        delta.puts = [put]
      }
      try await world.read { reader, zone throws in
        let row = try #require(try reader.file(blob))
        #expect((row.state, row.owner, row.replacedMs, row.key) == (.attached, nil, nil, ticket.key))
        #expect(try reader.parts(of: row).isEmpty)
        #expect(try reader.replacedContents(of: world.account.userID, bytes: .max).isEmpty)
        #expect(try reader.usage(of: user).uploadBytes == 0)
        #expect(try reader.contentBytes(of: user) == 100_000)
        #expect(try reader.blobs([ticket.key]).map(\.id) == [blob])
      }
      try await world.commit { reader, zone, delta throws in
        let known = try #require(try reader.nodes([node], in: zone.key).first { $0.leaf.node == node })
        delta.puts = [world.put(node, seq: 3, replacing: known)]
      }
      let files = try await world.store.write([.upload(blob)]) { tx in
        try tx.removeBlobs([ticket])
        return try tx.file(blob)
      }
      #expect(files == nil)
    }
  }

  /// - Ten concurrent writes, each of which appends to the log where it finds its end
  /// => the log has them all
  @Test(arguments: stores) func commitsOfAZoneAreOneAfterTheOther(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let statuses = try await withThrowingTaskGroup(of: ZoneStatus.self) { group in
        for _ in 0..<10 { group.addTask { try await world.commit { _, _, _ in } } }
        return try await group.reduce(into: []) { $0.append($1) }.sorted { $0.seq < $1.seq }
      }
      #expect(statuses.map(\.seq) == Array(1...10))
      try await world.read { reader, zone throws in
        var seen: [UInt64] = []
        try reader.commits(of: zone, after: 4, withRecords: false) { row in
          seen.append(row.seq)
          return row.seq < 9
        }
        #expect(seen == [5, 6, 7, 8, 9])
        #expect(try reader.commit(4, of: zone)?.hash == statuses[3].head)
        #expect(try reader.commit(11, of: zone) == nil)
      }
    }
  }

  /// - A user asks with a position that their zones gave, with one of another user's, with one from before the store was
  ///   restored, and with none at all
  /// => the first answer has what has changed since, the others all zones
  @Test(arguments: stores) func aPositionMissesNoChange(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let other = try await World(world.store, try TestAccount())
      let (user, stranger) = (world.account.userID, other.account.userID)
      let all = try await world.store.read { try $0.zones(of: user, since: nil) }
      let foreign = try await world.store.read { try $0.zones(of: stranger, since: nil).position }
      #expect(all.own.count == 4)
      try await other.commit { _, _, _ in }
      let status = try await world.commit { _, _, _ in }
      let lost = FeedPosition(newest: ZoneStatus(zone: status.zone, seq: status.seq, head: .random()))
      let ahead = FeedPosition(newest: ZoneStatus(zone: status.zone, seq: status.seq + 1, head: status.head))
      try await world.read { reader, _ throws in
        let since = try reader.zones(of: user, since: all.position)
        #expect(since.own == [status])
        let again = try reader.zones(of: user, since: since.position)
        #expect(again.own.isEmpty && again.position == since.position)
        for unknown in [foreign, lost, ahead, FeedPosition("restored"), FeedPosition("...")] {
          #expect(try reader.zones(of: user, since: unknown).own.count == 4)
        }
      }
    }
  }

  /// - A user accepts a zone of another user, is removed from it, and accepts it again
  /// => each change is in the next list after any position; a position of a change that was undone gives the whole list
  @Test(arguments: stores) func aPositionMissesNoChangeOfMemberships(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let guest = try await World(world.store, try TestAccount())
      let (home, user) = (world.account.home, guest.account.userID)
      @Sendable func list() async throws -> ZoneChanges {
        try await world.store.read { try $0.zones(of: user, since: nil) }
      }
      @Sendable func changes(_ position: FeedPosition) async throws -> ZoneChanges {
        try await world.store.read { try $0.zones(of: user, since: position) }
      }
      @Sendable func change(_ body: @escaping @Sendable (any MetadataTransaction, ZoneKey) throws -> Void) async throws
      {
        try await world.store.write([.zone(home.zone), .account(user)]) { tx in
          try body(tx, try #require(try tx.zone(home.zone)).key)
        }
      }
      let shared = try home.list(adding: [home.member(user).entry])
      try await world.commit { _, _, delta in delta.change(to: ZoneDelta.ListChange(acl: shared, grants: [])) }
      let before = try await list()
      #expect(before.accepted.isEmpty)
      try await change { tx, zone in try tx.putMembership(of: user, in: zone, now: 5) }
      let accepted = try await changes(before.position)
      #expect(accepted.own.isEmpty && accepted.accepted.map(\.seq) == [1])
      #expect(try await changes(accepted.position).accepted.isEmpty)
      let status = try await world.commit { _, _, _ in }
      let committed = try await changes(accepted.position)
      #expect(committed.accepted == [status] && committed.own.isEmpty)
      // The guest's own commit moves the position on, and it still misses nothing.
      try await guest.commit { _, _, _ in }
      let own = try await changes(committed.position)
      #expect(own.own.count == 1 && own.accepted.isEmpty)
      let removal = try await world.commit { _, _, delta in
        delta.change(to: ZoneDelta.ListChange(acl: home.acl, grants: []))
      }
      try await world.commit { _, _, _ in }
      for position in [own.position, committed.position, accepted.position] {
        #expect(try await changes(position).accepted == [removal])
      }
      let ended = try await changes(own.position)
      #expect(try await changes(ended.position).accepted.isEmpty)
      #expect(try await list().accepted == [removal])
      let row = try await world.read { reader, zone in
        (try reader.member(user, of: zone), try reader.membership(of: user, in: zone))
      }
      #expect(row.0 == MemberRow(permissions: [], joinedSeq: 1, joinedMs: 10, leftSeq: removal.seq))
      #expect(row.1 == MembershipRow(zone: home.zone, acceptedMs: 5, endedSeq: removal.seq))
      try await change { tx, zone in try tx.removeMembership(of: user, in: zone) }
      let whole = try await changes(ended.position)
      #expect(whole.own.count == 4 && whole.accepted.isEmpty)
      try await change { tx, zone in try tx.putMembership(of: user, in: zone, now: 6) }
      // The first change again has the number of the one that the position names, and another mark.
      #expect(try await changes(accepted.position).own.count == 4)
      #expect(try await changes(accepted.position).accepted.count == 1)
    }
  }

  @Test(arguments: stores) func aCommitThatThrows_leavesNothing(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      struct Stop: Error {}
      let node = NodeID.random()
      await #expect(throws: Stop.self) {
        try await world.store.write([.zone(world.zone)]) { tx in
          let row = try #require(try tx.zone(world.zone))
          let home = world.account.home
          let head = ZoneHead(zone: world.zone, seq: 1, hash: .random(), acl: home.acl)
          var delta = ZoneDelta(
            target: .existing(row.key), head: head, commit: try home.commit([]), receivedMs: 1)
          delta.puts = [world.put(node, bytes: 150)]
          delta.commit = try home.commit(delta.puts.map { .put(World.operation($0.leaf)) }).bytes
          _ = try tx.apply(CommitDelta(zones: [delta]))
          throw Stop()
        }
      }
      try await world.read { reader, zone throws in
        #expect(try reader.zone(world.zone)?.seq == 0)
        #expect(try reader.nodes([node], in: zone).isEmpty)
        #expect(try reader.contentBytes(of: world.account.userID) == 0)
      }
    }
  }

  /// - A list names a second member, and the next one does not
  @Test(arguments: stores) func rightsAreThoseOfTheListInForce(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let member = UserID(randomBytes(32))!
      let home = world.account.home
      let given = home.member(member)
      let list = try home.list(adding: [given.entry])
      try await world.commit { _, _, delta in
        delta.head.acl = list
        delta.change(to: ZoneDelta.ListChange(acl: list, grants: [given.grant]))
      }
      try await world.read { reader, zone throws in
        #expect(try reader.permissions(of: member, in: zone) == [.read])
        #expect(try reader.zone(world.zone)?.acl == list.bytes)
        #expect(try reader.grant(zone: zone, user: member, hash: given.grant.wrapHash) == given.grant.bytes)
        #expect(try reader.zones(offeredTo: member, after: 0, limit: 9).map(\.status.zone) == [world.zone])
        var lists: [[UInt8]?] = []
        try reader.commits(of: zone, after: 0, withRecords: false) { row in
          lists.append(row.acl)
          return true
        }
        #expect(lists == [list.bytes])
      }
      try await world.commit { _, _, delta in delta.change(to: ZoneDelta.ListChange(acl: home.acl, grants: [])) }
      try await world.read { reader, zone throws in
        #expect(try reader.permissions(of: member, in: zone) == nil)
        #expect(try reader.zones(offeredTo: member, after: 0, limit: 9).isEmpty)
      }
    }
  }
}
