internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Pausing pushes.

extension ZDCSyncManager {
  /// Stops sending in all processes of this database, even across launches, until ``resumePush(forLocalUserID:)`` is
  /// called. Sends in progress are completed. The queue grows and nothing is lost.
  ///
  /// Calls can be nested: this object resumes after as many calls to resume as to pause.
  ///
  /// ```swift
  /// try await session.syncManager.pausePush(forLocalUserID: user.uuid, andAbortUploads: true)  // an expensive network
  /// // later
  /// try await session.syncManager.resumePush(forLocalUserID: user.uuid)
  /// ```
  ///
  /// - Parameters:
  ///   - localUserID: The user whose pushes are paused.
  ///   - abort: Whether to also stop running uploads; large uploads continue later where they stopped.
  /// - Throws: ``ZDCError``: `localUserNotFound` or `localUserNotReady`; nothing is paused then. The error of the
  ///   database.
  public func pausePush(forLocalUserID localUserID: String, andAbortUploads abort: Bool = false) async throws {
    // First, because it drops the pauses of a removed user with the same ID.
    let engine = try await engine(for: localUserID)
    pauses.withLock { $0[localUserID, default: 0] += 1 }
    do {
      try await setPause(abort ? .abortingUploads : .lettingUploadsEnd, engine)
    } catch {
      takeBackPause(localUserID)
      throw error
    }
  }

  /// Resumes sending, in whichever process syncs. Ends one pause of this object or, if it has none, those of other
  /// processes and of earlier launches.
  ///
  /// ```swift
  /// try await session.syncManager.pausePush(forLocalUserID: user.uuid)
  /// try copyDatabase(at: zdc.databasePath)
  /// try await session.syncManager.resumePush(forLocalUserID: user.uuid)
  /// ```
  ///
  /// - Throws: ``ZDCError``: `localUserNotFound` or `localUserNotReady`. The error of the database.
  public func resumePush(forLocalUserID localUserID: String) async throws {
    let engine = try await engine(for: localUserID)
    if takeBackPause(localUserID) { try await setPause(nil, engine) }
  }

  /// - Returns: Whether it was the last pause.
  @discardableResult
  private func takeBackPause(_ localUserID: String) -> Bool {
    pauses.withLock { pauses in
      let left = (pauses[localUserID] ?? 1) - 1
      pauses[localUserID] = left > 0 ? left : nil
      return left <= 0
    }
  }

  private func setPause(_ pause: PushPause?, _ engine: SyncScheduler) async throws {
    try await database.rwDatabaseConnection.asyncReadWrite { transaction in
      try transaction.setPushPause(pause, localUser: engine.session.localUser)
    }
    _ = try await engine.isPaused()
    if pause == .abortingUploads { engine.rounds.cancel(.push) }
  }

  /// Pauses the pushes of each local user; see ``pausePush(forLocalUserID:andAbortUploads:)``.
  ///
  /// If one of them cannot be paused, its error is thrown and the users before it stay paused.
  ///
  /// ```swift
  /// try await session.syncManager.pausePushForAllLocalUsers(andAbortUploads: true)  // on a metered network
  /// ```
  ///
  /// - Throws: The errors of ``pausePush(forLocalUserID:andAbortUploads:)``.
  public func pausePushForAllLocalUsers(andAbortUploads abort: Bool = false) async throws {
    for user in try await users.allLocalUserIDs() { try await pausePush(forLocalUserID: user, andAbortUploads: abort) }
  }

  /// Ends one pause of each local user; see ``resumePush(forLocalUserID:)``.
  ///
  /// - Throws: The errors of ``resumePush(forLocalUserID:)``.
  public func resumePushForAllLocalUsers() async throws {
    for user in try await users.allLocalUserIDs() { try await resumePush(forLocalUserID: user) }
  }

  // MARK: Reading the state

  /// Returns whether the user's pushes are paused, whichever process paused them.
  ///
  /// ```swift
  /// banner.isHidden = try await !session.syncManager.isPushPaused(forLocalUserID: user.uuid)
  /// ```
  ///
  /// - Throws: ``ZDCError``: `localUserNotFound` or `localUserNotReady`. The error of the database.
  public func isPushPaused(forLocalUserID localUserID: String) async throws -> Bool {
    try await engine(for: localUserID).isPaused()
  }

  /// The original framework's name for ``isPushPaused(forLocalUserID:)``.
  public func isPushingPaused(forLocalUserID localUserID: String) async throws -> Bool {
    try await isPushPaused(forLocalUserID: localUserID)
  }

  /// Returns whether the pushes of all local users are paused. False if there is no local user.
  public func isPushingPausedForAllUsers() async throws -> Bool {
    let users = try await users.allLocalUserIDs()
    for user in users where try await !isPushPaused(forLocalUserID: user) { return false }
    return !users.isEmpty
  }

  /// Returns whether the pushes of at least one local user are paused.
  public func isPushingPausedForAnyUser() async throws -> Bool {
    for user in try await users.allLocalUserIDs() where try await isPushPaused(forLocalUserID: user) { return true }
    return false
  }
}
