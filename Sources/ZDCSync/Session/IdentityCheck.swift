internal import ZDCAccounts
internal import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// Compares the user's own identity chain with the pinned one, at each start and reconnection (PROTOCOL 3.2, 3.4).
package actor IdentityCheck {
  nonisolated private let executor: EngineExecutor
  private let session: SyncSession
  private var isChecked = false
  private var keptError: ZDCSecurityError.Code?
  /// The running check, which zones that need it at the same time share.
  private var running: Task<Void, any Error>?

  package init(session: SyncSession, executor: EngineExecutor) {
    (self.session, self.executor) = (session, executor)
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  /// Compares the server's chain with the pinned one, once until ``forget()``.
  ///
  /// Nothing is pushed before the check succeeds: a server that denies the account's history does not get its next
  /// change.
  ///
  /// - Parameter hasChanges: Whether there is something to push. A closed account without queued changes is no error.
  /// - Throws: `ZDCSecurityError`, which is stored in the database; `ZDCServerError`; `ZDCTransportError`.
  package func require(hasChanges: Bool = true) async throws {
    try await checkOnce()
    let keys = session.keys
    guard !keys.canSign, hasChanges || !keys.identity.isClosed else { return }
    // A login with the new words may come at any time.
    isChecked = false
    guard !keys.identity.isClosed else { throw ServerError(.accountClosed, "the account is closed") }
    throw ZDCSecurityError(.accessKeyChanged, user: session.user)
  }

  /// Runs the check without stopping the pull. A security error is stored and reported, but each page is verified
  /// separately.
  func checkBeforePull() async throws {
    do { try await checkOnce() } catch is ZDCSecurityError {}
  }

  /// Requires a new check, because the server was unreachable or the stream was reopened and the chain may have grown.
  package func forget() {
    isChecked = false
  }

  /// Reads the chain again, and returns whether the user's sign key has another generation than the one with which a refused
  /// request was signed.
  func hasNewKeys(since generation: UInt32) async throws -> Bool {
    forget()
    try await require()
    return session.keys.signGen != generation
  }

  /// Sends a request that is signed with the user's keys. Another device may have rotated them since the last check, and again
  /// after the next one; the request is made once more with each newer generation. There are no more of them than links in the
  /// user's chain.
  func signing<T: Sendable>(_ request: @Sendable () async throws -> T) async throws -> T {
    while true {
      let generation = session.keys.signGen
      do { return try await request() } catch let error as ServerError where error.security == .writerNotAuthorized {
        guard try await hasNewKeys(since: generation) else { throw error }
      }
    }
  }

  /// Accepts the end of the chain that the server names. If it is the pinned end, there is nothing to read, because the
  /// link's hash covers the whole chain. This proves exactly as much as serving the pinned chain again would.
  package func accept(_ named: ChainHead?) {
    let identity = session.keys.identity
    guard let named, named.seq == identity.seq, named.head == identity.head else { return }
    isChecked = true
    keptError = nil
  }

  private func checkOnce() async throws {
    while !isChecked {
      let task = running ?? Task { try await check() }
      running = task
      defer { if running == task { running = nil } }
      do {
        try await withTaskCancellationHandler {
          try await task.value
        } onCancel: {
          task.cancel()
        }
      } catch is CancellationError where !Task.isCancelled {
        // Another zone's step was cancelled, and the check with it.
      }
    }
  }

  private func check() async throws {
    do {
      if let keys = try await session.refreshIdentity() {
        session.currentKeys.withLock { $0 = keys }
        if keys.isAccessKeyChanged { try await keep(ZDCSecurityError(.accessKeyChanged, user: session.user)) }
      }
      isChecked = true
      keptError = nil
    } catch let error as ZDCSecurityError {
      let error = error.with(user: session.user)
      try await keep(error)
      throw error
    }
  }

  /// Records the error once, however often it occurs in a row.
  private func keep(_ error: ZDCSecurityError) async throws {
    session.events.report(error)
    guard keptError != error.code else { return }
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.record(error, localUser: session.localUser, zone: nil, atMs: session.now())
    }
    keptError = error.code
  }
}
