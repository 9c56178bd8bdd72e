internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// What becomes of a commit that the server refuses. `PushFailure` decides what an error means.

extension CommitSender {
  func failed(_ error: ServerError) async throws -> ZDCPushSummary {
    await remember(error)
    switch PushFailure(error) {
    case .noAccess where try await hasOwnerClosed(error):
      try await abandon(reason: .notAllowed, detail: error.code.rawValue)
      return ZDCPushSummary()
    case .noAccess where try await isAboutMember(error): return try await listRefused(error)
    case .noAccess where error.code == .forbidden: return try await forbidden(error)
    case .unknownOutcome, .retryLater, .noAccess: throw error
    case .contentLost: return try await contentLost(error)
    case .overQuota(let pause): return try await overQuota(error, pauseMs: pause)
    case .refused where try await isListChange():
      return try await listRefused(error)
    case .refused where error.security == .writerNotAuthorized:
      if try await signsWithNewKeys() { return ZDCPushSummary(triesAgain: true) }
      return try await refused(error, detail: error.security?.rawValue ?? error.code.rawValue)
    case .refused:
      return try await refused(error, detail: error.security?.rawValue ?? error.code.rawValue)
    }
  }

  /// Drops a request that the server would never accept. It checks whether the user may write before it compares the heads, so
  /// a request from before the list took that right away gets no page.
  private func forbidden(_ error: ServerError) async throws -> ZDCPushSummary {
    let request = try await storedRequest()
    note(try await ZonePuller(session: session, zone: zone).pull().refusal)
    // The pull may have found the request's commit in the log.
    guard try await storedRequest() != nil else { return ZDCPushSummary(triesAgain: true) }
    guard try await isOutrun(request) else { throw error }
    try await abandon(outcome: .overtaken)
    return ZDCPushSummary(triesAgain: true)
  }

  /// Returns whether the zone's owner has closed their account, as their identity chain confirms.
  private func hasOwnerClosed(_ error: ServerError) async throws -> Bool {
    guard error.code == .accountClosed, let owner = error.user else { return false }
    let row = try await session.database.asyncRead { [zone] transaction in try transaction.zones.zone(id: zone) }
    guard row?.owner == owner else { return false }
    return try await OwnerCheck(session: session).confirm(owner)
  }

  /// Returns whether the server says that a member whom the list in flight names has closed their account.
  private func isAboutMember(_ error: ServerError) async throws -> Bool {
    guard error.code == .accountClosed, let user = error.user, user != session.user,
      let list = try await stagedList()?.fields
    else { return false }
    return user != list.owner && list.entry(for: user) != nil
  }

  /// Returns whether the user's keys were rotated on another device. The request was then signed with an old key, and
  /// is made again.
  private func signsWithNewKeys() async throws -> Bool {
    let before = try PageContents(ownRequest: try await storedRequest()?.body ?? []).commits.first?.commit.fields
      .writerGen
    guard let before, try await identity.hasNewKeys(since: before) else { return false }
    try await abandon()
    return true
  }

  private func contentOperations() async throws -> [OperationRow] {
    try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).operations(zone: zone)
        .compactMap { try transaction.operations.operation(id: $0.operation) }.filter { $0.kind == .putData }
    }
  }

  /// Queues lost content again when the server does not store a blob that the request in flight names.
  ///
  /// - Returns: Whether the request names content that this device sent before and has now queued again.
  private func requeueLostContent() async throws -> Bool {
    let isQueued = try await session.database.asyncReadWrite { [session, zone] transaction in
      try LostContent(session: session, zone: zone, transaction: transaction).requeueInFlight()
    }
    if isQueued { _ = try await ZonePuller(session: session, zone: zone).pull() }
    return isQueued
  }

  /// Sends content with a blob again: immediately the first time, later after growing pauses. If the request names
  /// several blobs, smaller commits show which is gone. Content that is inlined in the commit is kept.
  private func contentLost(_ error: ServerError) async throws -> ZDCPushSummary {
    if try await requeueLostContent() {
      try await abandon()
      return ZDCPushSummary(triesAgain: true)
    }
    let sources = try await moveSources()
    if try await pull(sources) > 0 {
      try await abandon()
      return ZDCPushSummary(triesAgain: true)
    }
    let operations = try await contentOperations()
    guard !operations.isEmpty else {
      let code = error.code.rawValue
      return try await sources.isEmpty ? setAside(error, detail: code) : refused(error, detail: code)
    }
    let nodes = operations.compactMap(\.node)
    if await contents.uploaded(among: nodes).count > 1, try await split() { return ZDCPushSummary(triesAgain: true) }
    await handle(.contentLost(operations: operations.map(\.id)))
    await contents.forgetUploaded(of: nodes)
    let losses = state.losses(of: operations.map(\.id))
    let pause = Backoff.pause(losses: losses, random: session.time.random())
    try await abandon(
      reason: pause == 0 ? .ready : .serverSaid, detail: pause == 0 ? nil : error.code.rawValue,
      pauseMs: pause == 0 ? nil : pause, contentOnly: pause > 0)
    if pause == 0 { return ZDCPushSummary(triesAgain: true) }
    session.events.report(error)
    return await noteRefusal()
  }

  /// Sends operations without content separately, because they need no quota, unless the server refuses those too.
  private func overQuota(_ error: ServerError, pauseMs: UInt64) async throws -> ZDCPushSummary {
    let hasContent = try await !contentOperations().isEmpty
    let free = try await abandon(
      reason: .overQuota, detail: error.code.rawValue, pauseMs: pauseMs, contentOnly: hasContent)
    session.events.report(error)
    return ZDCPushSummary(triesAgain: free > 0)
  }

  /// Halves a refused commit of several nodes. If the commit has one node, its operation is set aside.
  func refused(_ error: any Error, detail: String) async throws -> ZDCPushSummary {
    if try await split() { return ZDCPushSummary(triesAgain: true) }
    return try await setAside(error, detail: detail)
  }

  /// Drops the request and halves the commits that follow.
  ///
  /// - Returns: False if the request has only one node, and stays.
  private func split() async throws -> Bool {
    let outcomes = try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).outcomes(zone: zone)
    }
    var nodes = Set(outcomes.map { $0.node ?? -$0.operation }).count
    if outcomes.isEmpty { nodes = try await rotatedNodes().count }
    guard nodes > 1 else { return false }
    await handle(.split(nodes: nodes))
    try await abandon()
    return true
  }

  private func setAside(_ error: any Error, detail: String) async throws -> ZDCPushSummary {
    if try await isRetirement() {
      // No queued operation can be set aside, and the next push makes the same commit again: the zone pauses.
      try await abandon()
      throw error
    }
    if try await leaveOutRotation(error) { return ZDCPushSummary(triesAgain: true) }
    if (error as? ServerError)?.security == .duplicateName, try await !isRetry() {
      // Retry immediately: the node is then put under another name.
      try await abandon(reason: .serverSaid, detail: detail, pauseMs: 0)
      return ZDCPushSummary(triesAgain: true)
    }
    let pause = Backoff.pause(attempts: 8, random: 0.5 + session.time.random() / 2)
    try await abandon(reason: .serverSaid, detail: detail, pauseMs: pause)
    session.events.report(error)
    return await noteRefusal()
  }

  /// Returns whether the request in flight does nothing but retire the user's keys.
  private func isRetirement() async throws -> Bool {
    guard let request = try await storedRequest() else { return false }
    return try PageContents(ownRequest: request.body).commits.flatMap(\.commit.fields.operations).allSatisfy {
      if case .retireKey = $0 { true } else { false }
    }
  }

  /// Returns the nodes that the request in flight rotates.
  private func rotatedNodes() async throws -> [NodeID] {
    try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).rotations(zone: zone)
        .compactMap { try transaction.nodes.node(id: $0.node)?.nodeID }
    }
  }

  /// Drops a refused request that rotates one node and does nothing else. The other nodes are rotated without it.
  private func leaveOutRotation(_ error: any Error) async throws -> Bool {
    let isAlone = try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).operations(zone: zone).isEmpty
    }
    guard isAlone, let node = try await rotatedNodes().first else { return false }
    note(refusedRotation: node)
    try await abandon()
    session.events.report(error)
    return true
  }

  /// Returns whether an operation of the commit failed before, for any reason.
  private func isRetry() async throws -> Bool {
    try await session.database.asyncRead { [zone] transaction in
      try InFlightStore(transaction: transaction).operations(zone: zone)
        .contains { try transaction.operations.operation(id: $0.operation).map { $0.attempts > 0 } ?? false }
    }
  }

  private func noteRefusal() async -> ZDCPushSummary {
    await handle(.nodeRefused)
    return ZDCPushSummary(triesAgain: !state.isRefusedThroughout)
  }

  // MARK: Content of moved nodes

  /// Returns the zones from which nodes of the request in flight are copied.
  private func moveSources() async throws -> Set<Int64> {
    try await session.database.asyncRead { [zone] transaction in
      guard try !transaction.moves.isEmpty else { return [] }
      let nodes = try InFlightStore(transaction: transaction).operations(zone: zone).compactMap(\.node)
      return Set(try nodes.compactMap { try transaction.moves.copy(row: $0)?.zone })
    }
  }

  /// Pulls the zones from which nodes are copied, after the server has refused their content: another device may have
  /// replaced it.
  ///
  /// - Returns: The number of new commits.
  private func pull(_ sources: Set<Int64>) async throws -> Int {
    var commits = 0
    for source in sources.sorted() {
      let pulled = try await ZonePuller(session: session, zone: source).pull()
      note(pulled.refusal)
      commits += pulled.summary.commits
    }
    return commits
  }

  // MARK: Lists

  /// Returns whether the request in flight changes the access list.
  private func isListChange() async throws -> Bool { try await stagedList() != nil }

  private func stagedList() async throws -> ZoneACL? {
    let page = try PageContents(ownRequest: try await storedRequest()?.body ?? [])
    return page.commits.lazy.compactMap { page.acl(of: $0.commit) }.first
  }

  /// A member may have rotated their keys since the grants were sealed, or a new one may have closed their account. The
  /// list is then made again.
  private func listRefused(_ error: ServerError) async throws -> ZDCPushSummary {
    guard let list = try await stagedList() else { return try await setAside(error, detail: error.code.rawValue) }
    let (keys, refused) = try await session.identities.recipients(list.fields.entries.map(\.user), own: session.keys)
    try await reportAndStore(refused)
    let isStale = list.fields.entries.contains { entry in keys[entry.user].map { $0.encGen > entry.encGen } ?? false }
    let isOutdated = try await identity.hasNewKeys(since: list.fields.writerGen)
    let detail = error.security?.rawValue ?? error.code.rawValue
    let hasClosed = try await hasNewMemberClosed(error)
    guard isStale || isOutdated || hasClosed else {
      if let rest = try await setAsideAdditions(error, detail: detail) { return rest }
      return try await setAside(error, detail: detail)
    }
    try await abandon()
    return ZDCPushSummary(triesAgain: true)
  }

  /// Returns whether a new member has closed their account, as their chain confirms. The next version leaves them out.
  private func hasNewMemberClosed(_ error: ServerError) async throws -> Bool {
    guard error.code == .accountClosed, let user = error.user else { return false }
    return try await session.database.asyncRead { [zone] transaction in
      let list = try transaction.zones.zone(id: zone)?.head?.acl.fields
      return list?.entry(for: user) == nil && transaction.user(id: user.text)?.identity == .closed
    }
  }

  /// Pauses the additions of a refused version that also removes members: a removal must not wait for an addition.
  ///
  /// - Returns: Nil if the version only adds or only removes.
  private func setAsideAdditions(_ error: ServerError, detail: String) async throws -> ZDCPushSummary? {
    let additions = try await session.database.asyncReadWrite { [session, zone] transaction -> [Int64] in
      let changes = try InFlightStore(transaction: transaction).operations(zone: zone)
        .compactMap { try transaction.operations.operation(id: $0.operation) }
      let additions = changes.filter { $0.listChange?.replacesKey == false }.map(\.id)
      guard !additions.isEmpty, additions.count < changes.count else { return [] }
      try InFlightCompletion(session: session, zone: zone, transaction: transaction).abandon()
      try transaction.pause(additions, in: session, reason: .serverSaid, detail: detail)
      return additions
    }
    guard !additions.isEmpty else { return nil }
    session.events.report(error)
    return ZDCPushSummary(triesAgain: true)
  }

  func reportAndStore(_ refused: [ZDCSecurityError]) async throws {
    for error in refused {
      try await session.database.asyncReadWrite { [session, zone] transaction in
        try transaction.record(error, localUser: session.localUser, zone: zone, atMs: session.now())
      }
      session.events.report(error)
    }
  }
}
