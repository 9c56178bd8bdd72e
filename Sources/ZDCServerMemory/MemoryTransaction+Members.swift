internal import ZDCProtocol
internal import ZDCServer

// Members of zones, and the zones that users follow.
extension MemoryTransaction {
  func member(_ user: UserID, of zone: ZoneKey) -> MemberRow? { tables.zones[zone]?.members.rows[user] }

  func permissions(of user: UserID, in zone: ZoneKey) -> ZoneACL.Permissions? {
    member(user, of: zone).flatMap { $0.leftSeq == nil ? $0.permissions : nil }
  }

  func zones(offeredTo user: UserID, after cursor: UInt64, limit: Int) -> [OfferedZone] {
    tables.zones.values
      .filter { $0.owner != user && !$0.row.isClosed && permissions(of: user, in: $0.row.key)?.contains(.read) == true }
      .filter { zone in tables.memberships[user]?[zone.row.key].map { $0.row.endedSeq != nil } ?? true }
      .map { OfferedZone(cursor: UInt64($0.row.key.rawValue), status: $0.row.status) }
      .filter { $0.cursor > cursor }.sorted { $0.cursor < $1.cursor }.prefix(limit).map { $0 }
  }

  func memberships(of user: UserID) -> [MembershipRow] {
    (tables.memberships[user] ?? [:])
      .sorted { ($0.value.row.acceptedMs, $0.key.rawValue) < ($1.value.row.acceptedMs, $1.key.rawValue) }
      .map(\.value.row)
  }

  func membership(of user: UserID, in zone: ZoneKey) -> MembershipRow? { tables.memberships[user]?[zone]?.row }

  func memberCounts(of user: UserID, limit: Int) -> MemberCounts {
    let named = tables.zones.values.compactMap { $0.members.rows[user] }
    let own = tables.zones.values.filter { $0.owner == user }.flatMap(\.members.rows.values)
    return MemberCounts(
      listed: min(limit, named.count { $0.leftSeq == nil }), removed: min(limit, named.count { $0.leftSeq != nil }),
      members: min(limit, own.count { $0.leftSeq == nil }), formerMembers: min(limit, own.count { $0.leftSeq != nil }))
  }

  func putMembership(of user: UserID, in zone: ZoneKey, now: UInt64) throws {
    guard let id = tables.zones[zone]?.row.zone else { return }
    try check(.zone(id))
    try check(.account(user))
    let row = MembershipRow(zone: id, acceptedMs: now)
    tables.memberships[user, default: [:]][zone] = MemoryTables.Membership(row: row, mark: nextMark(of: user))
  }

  func removeMembership(of user: UserID, in zone: ZoneKey) throws {
    guard let membership = membership(of: user, in: zone) else { return }
    if membership.endedSeq == nil { try check(.zone(membership.zone)) }
    try check(.account(user))
    tables.memberships[user]?[zone] = nil
  }

  private func nextMark(of user: UserID) -> MembershipMark {
    let newest = tables.memberships[user]?.values.map(\.mark.number).max() ?? 0
    return MembershipMark(number: newest + 1, mark: MembershipMark.randomMark())
  }

  func changeMembers(of zone: ZoneKey, to entries: [ZoneACL.Entry], seq: UInt64, at receivedMs: UInt64) {
    for user in tables.zones[zone]?.members.change(to: entries, seq: seq, at: receivedMs) ?? [] {
      guard var membership = tables.memberships[user]?[zone], membership.row.endedSeq == nil else { continue }
      membership.row.endedSeq = seq
      membership.mark = nextMark(of: user)
      tables.memberships[user]?[zone] = membership
    }
  }
}

// Lists of zones
extension MemoryTransaction {
  private typealias Start = (feedPosition: UInt64, number: UInt64)

  func zones(of user: UserID, since position: FeedPosition?) -> ZoneChanges {
    let start = position.flatMap { self.start($0, of: user) }
    let from = start ?? (0, 0)
    let own = tables.zones.values.filter { $0.owner == user && $0.feedPosition > from.feedPosition }
      .sorted { $0.feedPosition < $1.feedPosition }
    let memberships = tables.memberships[user] ?? [:]
    let accepted = memberships.compactMap { key, membership in
      tables.zones[key].flatMap { changed($0, membership, since: from) }
    }.sorted { $0.feedPosition < $1.feedPosition }
    let all = own.map { (status: $0.row.status, feedPosition: $0.feedPosition) } + accepted
    let newest = all.filter { $0.feedPosition > 0 }.max { $0.feedPosition < $1.feedPosition }
    let commit = newest?.status ?? (start == nil ? nil : position?.commit)
    let mark = memberships.values.map(\.mark).max { $0.number < $1.number }
    return ZoneChanges(
      own: own.map(\.row.status), accepted: accepted.map(\.status),
      position: commit.map { FeedPosition(newest: $0, membership: mark) } ?? FeedPosition(""))
  }

  /// Returns an accepted zone if it has changed; with position zero if the user no longer follows it.
  private func changed(
    _ zone: MemoryTables.Zone, _ membership: MemoryTables.Membership, since start: Start
  ) -> (status: ZoneStatus, feedPosition: UInt64)? {
    let isChanged = membership.mark.number > start.number
    guard let end = membership.row.endedSeq else {
      return isChanged || zone.feedPosition > start.feedPosition ? (zone.row.status, zone.feedPosition) : nil
    }
    return isChanged ? (ZoneStatus(zone: zone.row.zone, seq: end, head: zone.log[Int(end)].hash), 0) : nil
  }

  private func start(_ position: FeedPosition, of user: UserID) -> Start? {
    guard let commit = position.commit, let key = tables.zoneKeys[commit.zone], let zone = tables.zones[key],
      zone.owner == user || tables.memberships[user]?[key] != nil, commit.seq <= zone.row.seq
    else { return nil }
    let stored = zone.log[Int(commit.seq)]
    guard stored.hash == commit.head else { return nil }
    guard let mark = position.membership else { return (stored.feedPosition, 0) }
    let isKnown = tables.memberships[user]?.values.contains { $0.mark == mark } ?? false
    return isKnown ? (stored.feedPosition, mark.number) : nil
  }
}
