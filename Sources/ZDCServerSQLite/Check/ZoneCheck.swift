internal import ZDCProtocol
internal import ZDCServer

/// Checks zones: their logs, heads, members and grants.
struct ZoneCheck {
  let pass: IntegrityCheck

  /// Checks every log by full replay, then the rows that the server reads for its responses.
  func checkZones() throws {
    let total = try pass.count("SELECT count(*) FROM commits")
    let usageCheck = UsageCheck(pass: pass)
    try usageCheck.sumUsage()
    let sql = """
      SELECT z.id, t.tree_id, z.root, z.tree, u.user_id, t.trunk, t.app
      FROM zones z JOIN trees t ON t.id = z.tree JOIN users u ON u.id = t.owner ORDER BY z.tree, z.id
      """
    var usage: TreeUsage?
    try pass.db.each(sql, []) { row in
      let zone = ZoneID(tree: try row.id(1), root: try row.id(2))
      let trunk = Trunk(rawValue: UInt8(clamping: row.int(5)))
      let derived = try trunk.map { TreeID.derive(owner: try row.id(4), trunk: $0, appTreeID: row.text(6)) }
      if derived != zone.tree {
        pass.add(.tree, CheckFinding.Field.zone(zone), "the tree's id does not match its owner")
      }
      if let done = usage, done.key != row.int(3) { try usageCheck.checkUsage(of: done) }
      var tree = usage.flatMap { $0.key == row.int(3) ? $0 : nil } ?? TreeUsage(key: row.int(3), tree: zone.tree)
      let bytes = try check(zone, key: ZoneKey(row.int(0)), tree: tree.key, total: total)
      tree.add(bytes)
      if bytes == nil { pass.reachedNodes = nil }
      usage = tree
      pass.report.zones += 1
      return true
    }
    if let usage { try usageCheck.checkUsage(of: usage) }
    try checkMemberships()
  }

  /// Returns the bytes of the records of live nodes; nil if the log is broken.
  private func check(_ zone: ZoneID, key: ZoneKey, tree: Int64, total: UInt64) throws -> Int64? {
    guard let row = try pass.store.zone(zone) else {
      pass.add(.accessList, CheckFinding.Field.zone(zone), "the list in force is missing")
      return nil
    }
    try pass.scratch.removeAll()
    var state = CheckedZone(pass: pass, zone: zone, key: key)
    guard let (head, feedPosition) = try replay(zone, key: key, into: &state, total: total) else { return nil }
    let stored = try pass.count("SELECT feed_position FROM zones WHERE id = \(key.rawValue)")
    let isHead =
      stored == feedPosition && row.seq == head.seq && row.head == head.hash && row.acl == head.acl.bytes
      && row.retiredBelow == head.retiredBelow && row.isClosed == head.isClosed
    if !isHead {
      pass.add(.zoneHead, CheckFinding.Field.zone(zone), "the zone's row does not match the end of its log")
    }
    try checkMembers(of: zone, key: key, expected: state.members)
    try checkGrants(of: zone, key: key, acl: head.acl)
    let nodes = NodeCheck(pass: pass)
    guard !row.isClosed else { return try nodes.leavingRecordBytes(of: zone, tree: tree) }
    return try nodes.checkNodes(of: zone, key: key, tree: tree, expected: pass.scratch)
  }

  /// Returns the list that a genesis names, if it is stored.
  private func stateList(of commit: ZoneCommit, key: ZoneKey) throws -> StateList? {
    guard commit.fields.genesisState != nil else { return nil }
    var (bytes, index): ([UInt8], Int) = ([], 0)
    while let part = try pass.store.statePart(index, of: key) {
      bytes += part
      index += 1
    }
    return bytes.isEmpty ? nil : try StateList(bytes)
  }

  /// Checks that a zone begins as the log says that it was split off from.
  private func check(_ split: ZoneSplit) throws {
    guard let zone = try pass.store.zone(split.zone)?.key else { throw ZDCSecurityError(.splitMismatch) }
    let sql = "SELECT bytes FROM commits WHERE zone = ? AND seq = 0"
    guard let genesis = try pass.db.first(sql, .int(zone.rawValue), row: { $0.bytes(0) }) else {
      throw ZDCSecurityError(.splitMismatch)
    }
    try split.check(try ZoneCommit(genesis))
  }

  /// Returns the head after the last commit; nil if the log is invalid.
  private func replay(
    _ zone: ZoneID, key: ZoneKey, into state: inout CheckedZone, total: UInt64
  ) throws -> (head: ZoneHead, feedPosition: UInt64)? {
    let sql = """
      SELECT seq, hash, feed_position, bytes, acl, received_ms FROM commits WHERE zone = ? ORDER BY seq
      """
    let replay = ZoneReplay(identities: CheckedIdentities(pass: pass))
    var head: ZoneHead?
    var feedPosition: UInt64 = 0
    var isBroken = false
    try pass.db.each(sql, [.int(key.rawValue)]) { row in
      let seq = row.unsigned(0)
      do {
        let commit = try ZoneCommit(row.bytes(3))
        let acl = try row.optionalInt(4).flatMap { try pass.store.acl($0) }.map { bytes in try ZoneACL(bytes) }
        state.begin(commit, acl: acl ?? head?.acl)
        if let acl { state.change(to: acl, seq: seq, at: row.unsigned(5)) }
        let list = try stateList(of: commit, key: key)
        let step = try replay.advance(commit, acl: acl, list: list, after: head, to: &state)
        try step.split.map { try check($0) }
        head = step.head
        if try commit.fields.seq != seq || commit.hash != row.id(1) {
          pass.add(
            .zoneHead, CheckFinding.Field.zone(zone) + [.number("seq", seq)],
            "the commit's row does not match its bytes")
        }
        feedPosition = row.unsigned(2)
      } catch let error as ZDCSecurityError {
        pass.add(.zoneLog, CheckFinding.Field.zone(zone) + [.number("seq", seq)], error.code.rawValue)
        isBroken = true
      }
      pass.report.commits += 1
      if pass.report.commits % 256 == 0 { pass.advance(.zones, pass.report.commits, of: total) }
      return !isBroken
    }
    if head == nil, !isBroken { pass.add(.zoneLog, CheckFinding.Field.zone(zone), "the log is empty") }
    return isBroken ? nil : head.map { ($0, feedPosition) }
  }

  private func checkMembers(of zone: ZoneID, key: ZoneKey, expected: MemberTable) throws {
    var stored: [UserID: MemberRow] = [:]
    try pass.db.each("SELECT user_id FROM members WHERE zone = ?", [.int(key.rawValue)]) { row in
      let user: UserID = try row.id(0)
      stored[user] = try pass.store.member(user, of: key)
      return true
    }
    if stored != expected.rows {
      pass.add(.accessList, CheckFinding.Field.zone(zone), "the members and former members do not match the lists")
    }
  }

  /// Checks that users follow only zones whose members they are: a membership ends with the commit that removes the member.
  /// One pass over all zones: a query for each would read all memberships each time.
  private func checkMemberships() throws {
    let sql = """
      SELECT t.tree_id, z.root FROM memberships f JOIN zones z ON z.id = f.zone JOIN trees t ON t.id = z.tree
        LEFT JOIN users u ON u.id = f.user LEFT JOIN members m ON m.user_id = u.user_id AND m.zone = f.zone
      WHERE m.user_id IS NULL OR f.ended_seq IS NULL AND m.left_seq IS NOT NULL
      """
    try pass.db.each(sql, []) { row in
      let zone = ZoneID(tree: try row.id(0), root: try row.id(1))
      pass.add(.accessList, CheckFinding.Field.zone(zone), "a user follows the zone without being a member")
      return true
    }
  }

  private func checkGrants(of zone: ZoneID, key: ZoneKey, acl: ZoneACL) throws {
    for entry in acl.fields.entries {
      let bytes = try pass.store.grant(zone: key, user: entry.user, hash: entry.wrapHash)
      let hash = bytes.flatMap { try? Grant($0) }?.wrapHash
      if hash != entry.wrapHash {
        pass.add(.grant, CheckFinding.Field.zone(zone) + [.user(entry.user)], "the grant is missing or altered")
      }
    }
  }
}
