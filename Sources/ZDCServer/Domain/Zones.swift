internal import ZDCProtocol

/// A page of a zone's log, and the log's head.
struct CommitPage: Sendable {
  var zone: ZoneID
  var body: [UInt8]
  var seq: UInt64
  var head: CommitHash
  var more: Bool
  var damaged: [RecordDamaged] = []
  /// The last commit of the page, or the caller's last commit if the page has none.
  var last: UInt64?
}

/// The part of a zone's log that a caller asks for.
struct PageRequest: Sendable {
  /// Nil for the log from its genesis.
  var after: UInt64?
  /// Whether the live records of the page's puts follow.
  var withRecords = false
  /// Whether an access list may come as an edit of the one before.
  var withEdits = false
  /// The maximum length of the page.
  var room = Limits.pageBytes
  /// Whether the page may have no commit although there are some, because the first one is too long.
  var isPartial = false
}

/// The answer to a request for records.
struct RecordBundle: Sendable {
  var body: [UInt8]
  var damaged: [RecordDamaged]
}

/// Reads zones: their list, logs, records and small content (PROTOCOL 3.7).
enum Zones {
  /// Returns the user's own zones and those that they have accepted. Other zones whose lists name the user are only in
  /// ``offered(to:after:in:)``.
  static func list(of user: UserID, since: FeedPosition?, in reader: any MetadataReader) throws -> ZoneList {
    let changes = try reader.zones(of: user, since: since)
    let chain = try reader.user(user).map { ChainHead(seq: $0.linkSeq, head: $0.linkHead) }
    return ZoneList(
      feedPosition: changes.position, zones: changes.own + changes.accepted, chain: chain,
      newestMessage: try reader.newestEnvelope(of: user))
  }

  private static let offersPerPage = 100

  /// Returns a page of the zones of other users whose access lists let this user read, and which they have not accepted.
  static func offered(to user: UserID, after cursor: UInt64, in reader: any MetadataReader) throws -> ZoneList {
    let offers = try reader.zones(offeredTo: user, after: cursor, limit: offersPerPage)
    let next = offers.count == offersPerPage ? offers.last?.cursor : nil
    return ZoneList(zones: offers.map(\.status), next: next)
  }

  /// Returns whole commits after `after`, followed by the live records of their puts.
  ///
  /// A former member gets the commits up to the one that removed them, and no records. A page never splits a commit.
  /// Records that do not fit are left out: the client requests them by node and hash.
  static func page(
    _ id: ZoneID, for user: UserID, _ request: PageRequest, in reader: any MetadataReader
  ) throws -> CommitPage {
    let log = try Access.log(id, of: user, in: reader)
    let (zone, room) = (log.zone, request.room)
    var lists = PageLists(zone: zone.key, withEdits: request.withEdits, reader: reader)
    var commits = Bundle.Writer()
    var records = Bundle.Writer()
    var damaged: [RecordDamaged] = []
    var last = request.after
    try reader.commits(of: zone.key, after: last, withRecords: request.withRecords && !log.hasEnded) { row in
      guard row.seq <= log.status.seq else { return false }
      let items = try items(of: row, lists: &lists, user: user, in: reader)
      let live = bundle(row.records, room: room - items.count)
      let length = commits.count + records.count + items.count + live.count
      guard length <= room || commits.count == 0 && !request.isPartial else { return false }
      commits.append(items: items)
      records.append(items: live)
      damaged += row.damaged
      last = row.seq
      return commits.count + records.count < room
    }
    let more = last.map { $0 < log.status.seq } ?? true
    return CommitPage(
      zone: id, body: commits.bytes + records.bytes, seq: log.status.seq, head: log.status.head, more: more,
      damaged: damaged,
      last: last)
  }

  /// Returns pages of several zones' logs, in the order requested. The answer ends before the zone for whose next
  /// commit there is no room; the first zone always has one.
  static func pages(
    _ positions: [ZonePosition], for user: UserID, _ request: PageRequest, in reader: any MetadataReader
  ) throws -> (body: [UInt8], damaged: [(zone: ZoneID, records: [RecordDamaged])]) {
    var out = ByteWriter()
    var damaged: [(zone: ZoneID, records: [RecordDamaged])] = []
    for position in positions {
      var request = request
      request.after = position.after
      request.room = Limits.pageBytes - out.bytes.count - ZonePage.headerBytes
      request.isPartial = !out.bytes.isEmpty
      guard let page = try readable(position.zone, user, request, in: reader) else {
        ZonePage(zone: position.zone, log: nil).append(to: &out)
        continue
      }
      guard !page.body.isEmpty || !page.more else { break }
      let log = ZonePage.Log(seq: page.seq, head: page.head, hasMore: page.more, body: page.body[...])
      ZonePage(zone: position.zone, log: log).append(to: &out)
      if !page.damaged.isEmpty { damaged.append((position.zone, page.damaged)) }
    }
    return (out.bytes, damaged)
  }

  /// Returns a page of the zone; nil if the user may not see it.
  private static func readable(
    _ zone: ZoneID, _ user: UserID, _ request: PageRequest, in reader: any MetadataReader
  ) throws -> CommitPage? {
    do { return try page(zone, for: user, request, in: reader) } catch let error as ServerError
      where error.code == .notFound
    { return nil }
  }

  /// Returns the access list that the commit introduced, the caller's own grant, and the commit.
  private static func items(
    of row: CommitRow, lists: inout PageLists, user: UserID, in reader: any MetadataReader
  ) throws -> [UInt8] {
    var writer = Bundle.Writer(capacity: row.bytes.count + 16)
    if let bytes = row.acl {
      let list = try lists.append(bytes, ofCommit: row.seq, to: &writer)
      if let entry = list.fields.entry(for: user),
        let grant = try reader.grant(zone: lists.zone, user: user, hash: entry.wrapHash)
      {
        writer.append(grant: grant)
      }
    }
    writer.append(commit: row.bytes, receivedMs: row.receivedMs)
    return writer.bytes
  }

  /// Returns as many of these records as fit.
  private static func bundle(_ records: [StoredRecord], room: Int) -> [UInt8] {
    var writer = Bundle.Writer()
    for record in records {
      guard writer.count + record.bytes.count + 21 <= room else { break }
      writer.append(record)
    }
    return writer.bytes
  }

  /// Returns records by node and hash, in the order requested, without those that are unknown, not in this zone or
  /// damaged.
  ///
  /// - Throws: `gone` if no record is left. All were replaced longer ago than the retention: the caller's state is old.
  static func records(
    _ names: [RecordName], zone id: ZoneID, user: UserID, in reader: any MetadataReader
  ) throws -> RecordBundle {
    let (zone, member) = try Access.reader(id, user, in: reader)
    var writer = Bundle.Writer()
    var damaged: [RecordDamaged] = []
    pages: for part in parts(of: names) {
      let found = try reader.records(Array(part), in: zone.key)
      for name in part {
        switch found[name] {
        case .failure(let damage): damaged.append(damage)
        case .success(let record) where member.mayRead(replacedMs: record.replacedMs):
          guard writer.count == 0 || writer.count + record.bytes.count + 21 <= Limits.pageBytes else { break pages }
          writer.append(record)
        default: continue
        }
      }
    }
    guard names.isEmpty || writer.count > 0 || !damaged.isEmpty else {
      throw ServerError(.gone, "these records are no longer kept: pull commits again")
    }
    return RecordBundle(body: writer.bytes, damaged: damaged)
  }

  /// Returns the length of the state list with which the zone began, to those who may read its log.
  static func stateBytes(
    of id: ZoneID, for user: UserID, in reader: any MetadataReader
  ) throws -> (zone: ZoneKey, length: UInt64) {
    let zone = try Access.log(id, of: user, in: reader).zone.key
    guard let length = try reader.stateBytes(of: zone) else {
      throw ServerError(.notFound, "the zone did not begin with a state")
    }
    return (zone, length)
  }

  /// Splits a list of names into parts for one read of the store each, which is never larger than a page.
  static func parts<Name>(of names: [Name]) -> some Sequence<ArraySlice<Name>> {
    let count = Limits.pageBytes / max(Limits.recordBytes, Limits.inlineContentBytes)
    return stride(from: 0, to: names.count, by: count).lazy.map { names[$0..<min($0 + count, names.count)] }
  }

  /// Returns small content in the order requested, without blobs that are unknown, large, or not in this zone.
  static func contents(
    _ asked: [ContentName], zone id: ZoneID, user: UserID, in reader: any MetadataReader
  ) throws -> [UInt8] {
    let (zone, member) = try Access.reader(id, user, in: reader)
    var writer = Bundle.Writer()
    for names in parts(of: asked) {
      let known = try reader.contents(Array(names), in: zone.zone.tree).filter { _, blob in
        blob.isInline && blob.zone == zone.key && member.mayRead(replacedMs: blob.replacedMs)
      }
      let stored = try reader.inlineBytes(of: Array(known.values))
      for name in names {
        guard let blob = known[name], let bytes = stored[blob.key] else { continue }
        guard writer.count == 0 || writer.count + bytes.count + 21 <= Limits.pageBytes else { return writer.bytes }
        writer.append(content: bytes, blob: name.blob)
      }
    }
    return writer.bytes
  }

  static func status(
    ofNode node: NodeID, tree: TreeID, user: UserID, in reader: any MetadataReader
  ) throws -> ZoneStatus {
    guard let zone = try reader.zone(ofNode: node, tree: tree), !zone.isClosed,
      try Access.holds(.read, user: user, zone: zone.key, in: reader)
    else { throw ServerError(.notFound, "no such node") }
    return zone.status
  }
}
