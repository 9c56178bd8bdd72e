internal import ZDCAccounts
package import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

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
      try await doubts.lift(row)
      if page == nil { try await settle(named) }
      if row.owner != nil { try await graft.acceptIfAddedAgain() }
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
      if doubt.isFinal { throw try await doubts.conclude(doubt) }
      await session.api.connection.transport.renewConnections()
      if doubt.error.code == .writerUnknown { try await refreshKeys() }
      var second = self
      second.isSecondTry = true
      do {
        try await second.pullPages(nil, &summary, &left)
      } catch let doubt as Doubt { throw try await doubts.conclude(doubt) }
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

  // MARK: Errors of answers

  func commitPage(_ row: ZoneRow, withRecords: Bool) async throws -> CommitPage {
    var page = try await answer(about: row) {
      try await session.api.commitPage(row.zone, after: row.head?.seq, withRecords: withRecords, withEdits: true)
    }
    page.listBefore = row.head?.acl
    return page
  }

  /// Runs a request for a zone's log. A server that does not know a zone that the account was created with has lost the
  /// account, or claims to.
  func answer<Answer>(about row: ZoneRow, _ request: () async throws -> Answer) async throws -> Answer {
    do {
      return try await request()
    } catch let error as ServerError where error.code == .notFound {
      // Another user's zone may be out of reach for many reasons. Only a signed list says that access has ended.
      if row.isUnread, try await graft.pointer() != nil { throw UnreachableBranch() }
      if try await isOwnerClosed(row) { throw RemovedBranch() }
      guard row.owner == nil, HeadRules.isAccountMissing(owner: row.head?.acl.fields.owner, user: session.user) else {
        throw error
      }
      let missing = ZDCSecurityError(.accountStateMissing, zone: row.zone, user: session.user)
      throw try await doubts.conclude(Doubt(missing, .none))
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
    let expected = try await session.database.asyncRead { [session] in
      try ExpectedHeadStore($0, localUser: session.localUser).head(of: row.zone)
    }
    guard let expected, page.head.seq < expected.seq else { return }
    throw Doubt(ZDCSecurityError(.zoneRollback, zone: row.zone), .suspicion)
  }

  /// Handles class 2 errors that affect the zone as a whole, such as a missing grant. The zone stays as it is, and the
  /// next pull tries again. Each error is reported once.
  private func waiting(_ body: () async throws -> Pulled) async throws -> Pulled {
    do {
      return try await body()
    } catch is UnreachableBranch {
      try await graft.noteUnreachable()
      return Pulled(isUnreachable: true)
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
}
