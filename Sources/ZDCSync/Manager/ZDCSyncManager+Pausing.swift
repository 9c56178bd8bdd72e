internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Not sending for a while (reference 3.13).

extension ZDCSyncManager {
  /// Stops sending, in all processes of this database, until ``resumePush(forLocalUserID:)``, also across launches. What
  /// is under way ends. The queue grows and nothing is lost.
  ///
  /// Nested: this object resumes when it was told so as often as it was told to pause.
  ///
  /// - Parameters:
  ///   - localUserID: Whose.
  ///   - abort: Uploads that are under way stop as well; large ones go on later where they were.
  public func pausePush(forLocalUserID localUserID: String, andAbortUploads abort: Bool = false) async throws {
    pauses.withLock { $0[localUserID, default: 0] += 1 }
    do {
      try await setPause(abort ? .abortingUploads : .lettingUploadsEnd, localUserID)
    } catch {
      takeBackPause(localUserID)
      throw error
    }
  }

  /// Sends again, in whatever process syncs. Takes back one pause of this object; without one, those of other processes
  /// and of earlier launches.
  public func resumePush(forLocalUserID localUserID: String) async throws {
    if takeBackPause(localUserID) { try await setPause(nil, localUserID) }
  }

  /// - Returns: Whether it was the last one.
  @discardableResult
  private func takeBackPause(_ localUserID: String) -> Bool {
    pauses.withLock { pauses in
      let left = (pauses[localUserID] ?? 1) - 1
      pauses[localUserID] = left > 0 ? left : nil
      return left <= 0
    }
  }

  private func setPause(_ pause: PushPause?, _ localUserID: String) async throws {
    let engine = try await engine(for: localUserID)
    try await database.rwDatabaseConnection.asyncReadWrite { transaction in
      try transaction.setPushPause(pause, localUser: engine.session.localUser)
    }
    _ = try await engine.isPaused()
    if pause == .abortingUploads { await engine.abort(.push) }
  }

  public func pausePushForAllLocalUsers(andAbortUploads abort: Bool = false) async throws {
    for user in try await users.allLocalUserIDs() { try await pausePush(forLocalUserID: user, andAbortUploads: abort) }
  }

  public func resumePushForAllLocalUsers() async throws {
    for user in try await users.allLocalUserIDs() { try await resumePush(forLocalUserID: user) }
  }

  // MARK: Asking

  /// Whether the user's pushes are paused, in whatever process that was said.
  public func isPushPaused(forLocalUserID localUserID: String) async throws -> Bool {
    try await engine(for: localUserID).isPaused()
  }

  /// The original's name of ``isPushPaused(forLocalUserID:)``.
  public func isPushingPaused(forLocalUserID localUserID: String) async throws -> Bool {
    try await isPushPaused(forLocalUserID: localUserID)
  }

  /// False if there is no local user.
  public func isPushingPausedForAllUsers() async throws -> Bool {
    let users = try await users.allLocalUserIDs()
    for user in users where try await !isPushPaused(forLocalUserID: user) { return false }
    return !users.isEmpty
  }

  public func isPushingPausedForAnyUser() async throws -> Bool {
    for user in try await users.allLocalUserIDs() where try await isPushPaused(forLocalUserID: user) { return true }
    return false
  }
}
