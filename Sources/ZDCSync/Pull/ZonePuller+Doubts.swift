internal import ZDCAccounts
package import ZDCClientAPI
internal import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// An answer that cannot be followed, with the evidence that it provides.
struct Doubt: Error {
  package var error: ZDCSecurityError
  package var evidence: HeadRules.Evidence
  /// Whether a retry is pointless, because the signed log names the answer's objects by their hashes.
  var isFinal = false

  package init(_ error: ZDCSecurityError, _ evidence: HeadRules.Evidence) {
    (self.error, self.evidence) = (error, evidence)
  }

  package init(_ error: ZDCSecurityError, isSigned: Bool) {
    self.init(error, HeadRules.evidence(of: error.code, isSigned: isSigned))
  }
}

extension ZoneRow {
  /// Returns whether the verified list of another user's zone no longer names the user.
  func hasLostAccess(_ user: UserID) -> Bool {
    guard owner != nil, let list = head?.acl.fields else { return false }
    return list.entry(for: user) == nil
  }
}

// Handles answers that cannot be followed: the puller asks once more over another connection, then the zone stalls or
// is frozen (PROTOCOL 3.7, "Pins").

extension ZonePuller {
  package func follow(_ page: CommitPage?, _ pages: RoundPages? = nil) async throws -> Pulled {
    try await waiting {
      guard let (row, named) = try await rowAndMemberHeads(), mayFollow(row, hasPage: page != nil) else {
        return Pulled()
      }
      if row.isClosed || row.hasLostAccess(session.user) { return try await endAccess(row) }
      var summary = ZDCPullSummary()
      var left = DeferredNodes()
      try await retryDelegateCalls(&summary, &left)
      do {
        // The pages of the round may have been requested before a member named a head.
        try await followTwice(page, named.isEmpty ? pages : nil, &summary, &left)
      } catch let error as ZDCSecurityError where row.frozen != nil && HeadRules.isAboutLog(error.code) {
        // The zone is frozen as before the launch, and the user already knows.
        session.retriedFrozen.withLock { _ = $0.insert(zone) }
        return Pulled()
      }
      try await lift(row)
      if page == nil { try await settle(named) }
      if row.owner != nil { try await acceptIfAddedAgain() }
      await forgetIfLost(row)
      return Pulled(summary: summary, refusal: left.refusal)
    }
  }

  /// Removes the branches of a zone that stayed because the app threw when access ended, or when the zone ended.
  private func endAccess(_ row: ZoneRow) async throws -> Pulled {
    let (_, refusal) = try await session.writeNotifyingDelegate { [session, zone] transaction in
      try LostAccess(
        session: session, zone: zone, transaction: transaction, receivedMs: 0, isEnd: row.isClosed
      ).settle()
    }
    await forgetIfLost(row)
    return Pulled(refusal: refusal)
  }

  /// Ends the membership on the server after access has ended. If that fails, the server keeps naming a zone that this
  /// device ignores.
  func forgetIfLost(_ row: ZoneRow) async {
    guard row.owner != nil else { return }
    do {
      if try await zoneRow() == nil { try await session.api.forgetZone(row.zone) }
    } catch { session.events.report(error) }
  }

  /// Returns whether the zone may be pulled. A zone that is frozen without proof is retried from its pin once after
  /// each launch.
  private func mayFollow(_ row: ZoneRow, hasPage: Bool) -> Bool {
    if row.frozen == nil { return true }
    return !row.isProven && !hasPage && !session.retriedFrozen.withLock { $0.contains(zone) }
  }

  private func followTwice(
    _ page: CommitPage?, _ pages: RoundPages?, _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes
  ) async throws {
    do {
      guard let page else { return try await pullPages(pages, &summary, &left) }
      try await takePage(page, &summary, &left)
    } catch let doubt as Doubt {
      if doubt.isFinal { throw try await conclude(doubt) }
      await session.api.connection.transport.renewConnections()
      if doubt.error.code == .writerUnknown { try await refreshKeys() }
      var second = self
      second.isSecondTry = true
      do {
        try await second.pullPages(nil, &summary, &left)
      } catch let doubt as Doubt { throw try await conclude(doubt) }
    }
  }

  /// Refreshes this user's keys, because another device may have begun to sign with a new key.
  private func refreshKeys() async throws {
    do {
      guard let keys = try await session.refreshIdentity() else { return }
      session.currentKeys.withLock { $0 = keys }
    } catch is ZDCSecurityError {
      // The engine checks the chain before each push and reports any error.
    }
  }

  /// Reads this user's chain again if a list names a key that another device has made since the last check. Without that key
  /// the user's grant could not be opened.
  func readKeys(namedIn lists: [ZoneACL]) async throws {
    let newest = lists.compactMap { $0.fields.entry(for: session.user)?.encGen }.max()
    guard let newest, newest > session.keys.encGen else { return }
    try await refreshKeys()
  }

  /// Lifts a freeze or stall after the server's log extends the pin again.
  private func lift(_ row: ZoneRow) async throws {
    guard row.frozen != nil || row.doubt != nil else { return }
    try await session.database.asyncReadWrite { [zone] transaction in
      guard var row = try transaction.zones.zone(id: zone) else { return }
      (row.frozen, row.isProven, row.doubt) = (nil, false, nil)
      try transaction.zones.update(row)
    }
  }

  /// Freezes the zone, or stores why it stalls. The error is recorded and reported when the state begins.
  private func conclude(_ doubt: Doubt) async throws -> ZDCSecurityError {
    let isNew = try await session.database.asyncReadWrite { [session, zone] transaction in
      guard var row = try transaction.zones.zone(id: zone) else { return false }
      let isNew = doubt.evidence == .none ? row.doubt != doubt.error.code : row.frozen != doubt.error.code
      if doubt.evidence == .none {
        row.doubt = doubt.error.code
      } else {
        (row.frozen, row.isProven, row.doubt) = (doubt.error.code, row.isProven || doubt.evidence == .proof, nil)
      }
      try transaction.zones.update(row)
      guard isNew else { return false }
      try transaction.record(doubt.error, localUser: session.localUser, zone: zone, atMs: session.now())
      return true
    }
    if isNew { session.events.report(doubt.error) }
    return doubt.error
  }

  // MARK: Errors of answers

  /// Fetches a page. A server that does not know a zone that the account was created with has lost the account, or
  /// claims to.
  func commitPage(_ row: ZoneRow, withRecords: Bool) async throws -> CommitPage {
    do {
      return try await session.api.commitPage(row.zone, after: row.head?.seq, withRecords: withRecords)
    } catch let error as ServerError where error.code == .notFound {
      // Another user's zone may be out of reach for many reasons. Only a signed list says that access has ended.
      if row.isUnread, try await pointer() != nil { throw UnreachableBranch() }
      if try await isOwnerClosed(row) { throw RemovedBranch() }
      guard row.owner == nil, HeadRules.isAccountMissing(owner: row.head?.acl.fields.owner, user: session.user) else {
        throw error
      }
      throw try await keep(ZDCSecurityError(.accountStateMissing, zone: row.zone, user: session.user))
    } catch let error as ZDCSecurityError {
      throw Doubt(error.with(zone: row.zone), isSigned: false)
    }
  }

  /// Returns whether the owner of another user's zone has closed their account: the server removes the zone after 30 days.
  private func isOwnerClosed(_ row: ZoneRow) async throws -> Bool {
    guard let owner = row.owner else { return false }
    if row.ownerAccount != .open { return true }
    return try await OwnerCheck(session: session).confirm(owner)
  }

  /// Compares the head with the one that another device of the account has verified.
  func checkExpected(_ page: CommitPage, _ row: ZoneRow) async throws {
    let expected = try await session.database.asyncRead { [zone] in try ExpectedHeadStore($0).head(zone: zone) }
    guard let expected, page.head.seq < expected.seq else { return }
    throw Doubt(ZDCSecurityError(.zoneRollback, zone: row.zone), .suspicion)
  }

  package func decoding<Result>(_ zone: ZoneID, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as ZDCSecurityError where HeadRules.isAboutLog(error.code) {
      throw Doubt(error.with(zone: zone), isSigned: false)
    }
  }

  func doubting<Result>(
    _ zone: ZoneID, isSigned: () -> Bool = { false }, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let error as ZDCSecurityError where HeadRules.isAboutLog(error.code) {
      throw Doubt(error.with(zone: zone), isSigned: isSigned())
    }
  }

  /// Returns whether members have signed every commit of the page.
  static func isSigned(_ page: PageContents, _ writers: WriterKeys) -> Bool {
    !page.commits.isEmpty && page.commits.allSatisfy { isSigned($0.commit, writers) }
  }

  static func isSigned(_ commit: ZoneCommit, _ writers: WriterKeys) -> Bool {
    (try? commit.checkSigner(writers)) != nil
  }

  /// Handles class 2 errors that affect the zone as a whole, such as a missing grant. The zone stays as it is, and the
  /// next pull tries again. Each error is reported once.
  private func waiting(_ body: () async throws -> Pulled) async throws -> Pulled {
    do {
      return try await body()
    } catch is UnreachableBranch {
      return try await unreachable()
    } catch is RemovedBranch {
      return Pulled()
    } catch let error as ZDCSecurityError where !HeadRules.isAboutLog(error.code) {
      let isNew = try await session.database.asyncReadWrite { [session, zone] transaction in
        guard try transaction.lastSecurityEvent(zone: zone)?.code != error.code else { return false }
        try transaction.record(error, localUser: session.localUser, zone: zone, atMs: session.now())
        return true
      }
      if isNew { session.events.report(error) }
      return Pulled()
    }
  }

  /// Records and reports an error that freezes nothing. The next pull may or may not encounter it again.
  package func keep(_ error: ZDCSecurityError) async throws -> ZDCSecurityError {
    try await session.database.asyncReadWrite { [session, zone] transaction in
      try transaction.record(error, localUser: session.localUser, zone: zone, atMs: session.now())
    }
    session.events.report(error)
    return error
  }
}
