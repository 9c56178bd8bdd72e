internal import ZDCProtocol

/// A page of a zone's log, and the log's head.
struct CommitPage: Sendable {
  var zone: ZoneID
  var body: [UInt8]
  var seq: UInt64
  var head: CommitHash
  var more: Bool
  var damaged: [RecordDamaged] = []
}

/// The answer to a request for records.
struct RecordBundle: Sendable {
  var body: [UInt8]
  var damaged: [RecordDamaged]
}

/// Reads zones: their list, logs, records and small content (PROTOCOL 3.7).
enum Zones {
  /// Returns the user's own zones. Members get those of other users from ``offered(to:after:in:)``.
  static func list(of user: UserID, since: FeedPosition?, in reader: any MetadataReader) throws -> ZoneList {
    let (zones, position) = try reader.zones(ownedBy: user, since: since)
    let chain = try reader.user(user).map { ChainHead(seq: $0.linkSeq, head: $0.linkHead) }
    return ZoneList(feedPosition: position, zones: zones, chain: chain)
  }

  private static let offersPerPage = 100

  /// Returns a page of the zones of other users whose access lists let this user read.
  static func offered(to user: UserID, after cursor: UInt64, in reader: any MetadataReader) throws -> ZoneList {
    let offers = try reader.zones(offeredTo: user, after: cursor, limit: offersPerPage)
    let next = offers.count == offersPerPage ? offers.last?.cursor : nil
    return ZoneList(zones: offers.map(\.status), next: next)
  }

  /// Returns whole commits after `after`, followed by the live records of their puts.
  ///
  /// A page never splits a commit. Records that do not fit are left out: the client requests them by node and hash.
  static func page(
    _ id: ZoneID, for user: UserID, after: UInt64?, withRecords: Bool, in reader: any MetadataReader
  ) throws -> CommitPage {
    let zone = try Access.zone(id, of: user, needs: .read, in: reader)
    var commits = Bundle.Writer()
    var records = Bundle.Writer()
    var damaged: [RecordDamaged] = []
    var last = after
    try reader.commits(of: zone.key, after: after, withRecords: withRecords) { row in
      let items = try items(of: row, zone: zone, user: user, in: reader)
      let live = bundle(row.records, room: Limits.pageBytes - items.count)
      let length = commits.count + records.count + items.count + live.count
      guard commits.count == 0 || length <= Limits.pageBytes else { return false }
      commits.append(items: items)
      records.append(items: live)
      damaged += row.damaged
      last = row.seq
      return commits.count + records.count < Limits.pageBytes
    }
    let more = last.map { $0 < zone.seq } ?? true
    return CommitPage(
      zone: id, body: commits.bytes + records.bytes, seq: zone.seq, head: zone.head, more: more, damaged: damaged)
  }

  /// Returns the access list that the commit introduced, the caller's own grant, and the commit.
  private static func items(
    of row: CommitRow, zone: ZoneRow, user: UserID, in reader: any MetadataReader
  ) throws -> [UInt8] {
    var writer = Bundle.Writer(capacity: row.bytes.count + 16)
    if let bytes = row.acl {
      writer.append(acl: bytes)
      if let entry = try ZoneACL(bytes).fields.entry(for: user),
        let grant = try reader.grant(zone: zone.key, user: user, hash: entry.wrapHash)
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
    let zone = try Access.zone(id, of: user, needs: .read, in: reader)
    var writer = Bundle.Writer()
    var damaged: [RecordDamaged] = []
    for name in names {
      let found: StoredRecord?
      do { found = try reader.record(name, in: zone.key) } catch let damage as RecordDamaged {
        damaged.append(damage)
        continue
      }
      guard let record = found else { continue }
      guard writer.count == 0 || writer.count + record.bytes.count + 21 <= Limits.pageBytes else { break }
      writer.append(record)
    }
    guard names.isEmpty || writer.count > 0 || !damaged.isEmpty else {
      throw ServerError(.gone, "these records are no longer kept: pull commits again")
    }
    return RecordBundle(body: writer.bytes, damaged: damaged)
  }

  private static let contentsPerRead = 256

  /// Returns small content in the order requested, without blobs that are unknown, large, or not in this zone.
  static func contents(
    _ asked: [ContentName], zone id: ZoneID, user: UserID, in reader: any MetadataReader
  ) throws -> [UInt8] {
    let zone = try Access.zone(id, of: user, needs: .read, in: reader)
    var writer = Bundle.Writer()
    for start in stride(from: 0, to: asked.count, by: contentsPerRead) {
      let names = asked[start..<min(start + contentsPerRead, asked.count)]
      let known = try reader.contents(Array(names), in: zone.zone.tree)
      for name in names {
        guard let blob = known[name], blob.isInline, blob.zone == zone.key, let bytes = try reader.inlineBytes(of: blob)
        else { continue }
        guard writer.count == 0 || writer.count + bytes.count + 21 <= Limits.pageBytes else { return writer.bytes }
        writer.append(content: bytes, blob: name.blob)
      }
    }
    return writer.bytes
  }

  static func status(
    ofNode node: NodeID, tree: TreeID, user: UserID, in reader: any MetadataReader
  ) throws -> ZoneStatus {
    guard let zone = try reader.zone(ofNode: node, tree: tree),
      try Access.holds(.read, user: user, zone: zone.key, in: reader)
    else { throw ServerError(.notFound, "no such node") }
    return zone.status
  }
}
