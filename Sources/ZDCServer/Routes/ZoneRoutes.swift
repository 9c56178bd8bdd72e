internal import Hummingbird
internal import ZDCProtocol

/// Trees, zones, their logs, and the records and content that the logs name.
enum ZoneRoutes {
  static func createTree(_ call: Call) async throws -> Response {
    let user = try call.user
    let appTreeID = call.parameter("appTreeID")
    let births = try TrunkGenesis.all(try await call.bytes())
    let now = call.now
    let limits = Trees.Limit(trees: call.core.configuration.bounds.treesPerUser, quotas: call.core.quotas)
    let outcome = try await call.write([.account(user)]) { tx in
      try Trees.create(births, appTreeID: appTreeID, owner: user, limit: limits, now: now, in: tx)
    }
    return try .json(outcome.zones, status: outcome.isNew ? .created : .ok)
  }

  static func list(_ call: Call) async throws -> Response {
    let user = try call.user
    let after = try call.number("after") ?? 0
    guard try call.number("offered") == 1 else {
      let since = call.position
      return try .json(try await call.read { try Zones.list(of: user, since: since, in: $0) }, for: call)
    }
    try call.core.takeWork(of: user)
    return try .json(try await call.read { try Zones.offered(to: user, after: after, in: $0) })
  }

  /// Commits to one or more zones. The body is parsed and hashed before the write, because the store has only one
  /// writer.
  static func commit(_ call: Call) async throws -> Response {
    let user = try call.user
    let body = try await call.bytes()
    let request = try CommitRequest(body)
    let core = call.core
    try core.checkSubtreeWork(of: user)
    let zones = request.parts.map(\.commit.fields.zone)
    let writer = ZoneWriter(user: user, device: try call.authenticated.device)
    try await checkQueue(call, zones)
    try await core.coordination.enter(zones, as: writer, bytes: body.count)
    let now = call.now
    do {
      let prepared = try await prepareSplits(of: request, call)
      let outcome = try await call.write(request.subjects) { tx in
        try apply(request, by: user, core, prepared: prepared, now: now, in: tx)
      }
      await core.coordination.ended(.committed, in: zones, of: writer)
      await core.removeFiles(of: outcome.released)
      core.metrics.countCommits(outcome.notices.count, operations: outcome.operations)
      return try .json(outcome.response)
    } catch let stale as StaleHead {
      await core.coordination.ended(.failed, in: zones.filter { $0 != stale.zone }, of: writer)
      let (page, mayWrite) = try await call.read { reader in
        let mayWrite = try Access.mayWrite(in: stale.zone, user: user, in: reader)
        let request = PageRequest(after: stale.after, withRecords: true)
        return (try Zones.page(stale.zone, for: user, request, in: reader), mayWrite)
      }
      call.report(page.damaged, in: stale.zone)
      if mayWrite { await core.coordination.ended(.lost, in: [stale.zone], of: writer) }
      return try .page(page, for: call, status: .conflict)
    } catch {
      await core.coordination.ended(.failed, in: zones, of: writer)
      throw error
    }
  }

  private static func apply(
    _ request: CommitRequest, by user: UserID, _ core: ServerCore, prepared: PreparedSplits, now: UInt64,
    in tx: any MetadataTransaction
  ) throws -> Commits.Outcome {
    // Checks again: the user's concurrent requests may have been charged since.
    try core.checkSubtreeWork(of: user)
    let work = SubtreeWork(limit: core.configuration.bounds.subtreeNodesPerRequest)
    defer { core.subtrees.charge(user, work.nodes, now: core.elapsed) }
    let aids = CommitAids(
      rates: core.memberRates, splits: prepared, lists: core.lists, zones: core.configuration.bounds.zonesPerUser)
    let outcome = try Commits.apply(
      request, by: user, quotas: core.quotas, work: work, aids: aids, now: now, in: tx)
    if outcome.closesZone { tx.afterCommit { core.setClosing() } }
    for notice in outcome.notices { try core.coordination.announce(.head(notice), in: tx) }
    return outcome
  }

  /// Reads the branches that the request splits off, on a snapshot: the store's writer then only compares the head.
  private static func prepareSplits(of request: CommitRequest, _ call: Call) async throws -> PreparedSplits {
    guard request.hasSplit else { return [:] }
    let (core, user) = (call.core, try call.user)
    return try await call.read { reader in
      try core.checkSubtreeWork(of: user)
      let work = SubtreeWork(limit: core.configuration.bounds.subtreeNodesPerRequest)
      defer { core.subtrees.charge(user, work.nodes, now: core.elapsed) }
      return try request.prepareSplits(by: user, work: work, in: reader)
    }
  }

  /// Refuses members without `w` while a zone is busy. They get no place in its queue and retry later, so they neither
  /// delay the writers nor overtake them.
  private static func checkQueue(_ call: Call, _ zones: [ZoneID]) async throws {
    var found: Set<ZoneID> = []
    for zone in zones where await call.core.coordination.isBusy(zone) { found.insert(zone) }
    guard !found.isEmpty else { return }
    let (busy, user) = (found, try call.user)
    try await call.read { reader in
      for zone in busy {
        _ = try Access.zone(zone, of: user, needs: [], in: reader)
        guard try Access.mayWrite(in: zone, user: user, in: reader) else {
          throw ServerError(
            .zoneBusy, "the zone is busy: members who may write go first", retryable: true, retryAfterMs: 1_000)
        }
      }
    }
  }

  static func page(_ call: Call) async throws -> Response {
    let user = try call.user
    let zone = try call.zone()
    let request = try pageRequest(call, after: try call.number("after"))
    guard try call.number("whole") != 1 else { return try await wholeLog(call, zone, request) }
    let page = try await call.read { try Zones.page(zone, for: user, request, in: $0) }
    call.report(page.damaged, in: zone)
    return try .page(page, for: call)
  }

  private static func pageRequest(_ call: Call, after: UInt64? = nil) throws -> PageRequest {
    PageRequest(
      after: after, withRecords: try call.number("records") == 1, withEdits: try call.number("edits") == 1)
  }

  /// Streams the log up to its head in slices, without records. A new slice is read only when the client has taken the
  /// one before, and the user's rights are checked for each.
  private static func wholeLog(_ call: Call, _ zone: ZoneID, _ request: PageRequest) async throws -> Response {
    let share = try call.answerShare(of: logSliceBytes + Limits.commitBytes + Limits.aclBytes)
    let user = try call.user
    var slice = request
    (slice.withRecords, slice.room) = (false, logSliceBytes)
    let first = try await page(call, zone, user, slice)
    let rest = slice
    let channel = call.context.channel
    let body = ResponseBody { writer in
      var (next, slice) = (first, rest)
      while true {
        try await writer.write(ByteBuffer(bytes: next.body))
        guard let last = next.last, last < first.seq, !next.body.isEmpty else { break }
        try await channel.untilWritable()
        slice.after = last
        next = try await page(call, zone, user, slice)
      }
      withExtendedLifetime(share) {}
      try await writer.finish(nil)
    }
    return .log(head: first, body)
  }

  private static func page(
    _ call: Call, _ zone: ZoneID, _ user: UserID, _ request: PageRequest
  ) async throws -> CommitPage {
    try await call.read { try Zones.page(zone, for: user, request, in: $0) }
  }

  private static let logSliceBytes = 512 << 10

  /// Pages of up to 64 zones: a device that follows many pulls them in few requests.
  static func pages(_ call: Call) async throws -> Response {
    let user = try call.user
    let body = try await call.bytes()
    guard body.count % ZonePosition.byteCount == 0 else {
      throw ServerError(.invalidRequest, "expected a list of tree ids, zone roots and numbers of commits")
    }
    let positions = try ZonePosition.all(body)
    let request = try pageRequest(call)
    let answer = try await call.read { try Zones.pages(positions, for: user, request, in: $0) }
    for (zone, damaged) in answer.damaged { call.report(damaged, in: zone) }
    return try .octets(answer.body, for: call)
  }

  static func records(_ call: Call) async throws -> Response {
    let user = try call.user
    let zone = try call.zone()
    let names = try await recordNames(call)
    let answer = try await call.read { try Zones.records(names, zone: zone, user: user, in: $0) }
    call.report(answer.damaged, in: zone)
    return try .bundle(answer.body, for: call)
  }

  /// Says which replaced and deleted versions are still stored.
  static func kept(_ call: Call) async throws -> Response {
    let user = try call.user
    let zone = try call.zone()
    let names = try await recordNames(call)
    let retentionMs = call.core.configuration.bounds.retentionMs
    let states = try await call.read {
      try KeptVersions(zone: zone, user: user, retentionMs: retentionMs, in: $0).states(names)
    }
    return try .octets(KeptState.bytes(of: states), for: call)
  }

  private static func recordNames(_ call: Call) async throws -> [RecordName] {
    let body = try await call.bytes()
    guard body.count % 48 == 0 else {
      throw ServerError(.invalidRequest, "expected a list of node ids and record hashes")
    }
    var reader = ByteReader(body)
    var names: [RecordName] = []
    while reader.remaining > 0 { names.append(RecordName(node: try reader.read16(), hash: try reader.read32())) }
    return names
  }

  static func contents(_ call: Call) async throws -> Response {
    let user = try call.user
    let zone = try call.zone()
    let body = try await call.bytes()
    var reader = ByteReader(body)
    guard body.count % 32 == 0 else { throw ServerError(.invalidRequest, "expected a list of node ids and blob ids") }
    var names: [ContentName] = []
    while reader.remaining > 0 { names.append(ContentName(node: try reader.read16(), blob: try reader.read16())) }
    let asked = names
    return try .bundle(
      try await call.read { try Zones.contents(asked, zone: zone, user: user, in: $0) }, for: call)
  }

  /// The state list with which a zone began that was split off, part by part as the client takes it.
  static func state(_ call: Call) async throws -> Response {
    let user = try call.user
    let id = try call.zone()
    let (zone, length) = try await call.read { try Zones.stateBytes(of: id, for: user, in: $0) }
    let share = try call.answerShare(of: min(Int(length), 1 << 20))
    let channel = call.context.channel
    let body = ResponseBody(contentLength: Int(length)) { writer in
      var index = 0
      while let part = try await call.read({ [index] in try $0.statePart(index, of: zone) }) {
        try await writer.write(ByteBuffer(bytes: part))
        try await channel.untilWritable()
        index += 1
      }
      withExtendedLifetime(share) {}
      try await writer.finish(nil)
    }
    return Response(
      status: .ok, headers: [.contentType: "application/octet-stream", .cacheControl: "no-store"], body: body)
  }

  static func node(_ call: Call) async throws -> Response {
    let user = try call.user
    let tree: TreeID = try call.id("treeID")
    let node: NodeID = try call.id("nodeID")
    return try .json(try await call.read { try Zones.status(ofNode: node, tree: tree, user: user, in: $0) })
  }
}
