internal import ZDCAccounts
internal import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// Compares the user's own identity chain with the pinned one, at each start and each reconnection (PROTOCOL 3.2, 3.4).
package actor IdentityCheck {
  nonisolated private let executor: EngineExecutor
  private let session: SyncSession
  private var isChecked = false
  private var keptError: ZDCSecurityError.Code?
  /// The check that is under way: zones that need it at the same time share it.
  private var running: Task<Void, any Error>?

  package init(session: SyncSession, executor: EngineExecutor) {
    (self.session, self.executor) = (session, executor)
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  /// Compares the server's chain with the pinned one, once until ``forget()``.
  ///
  /// Nothing is pushed before it holds: a server that denies what the account was does not get its next change.
  ///
  /// - Throws: `ZDCSecurityError`, which is kept in the database; `ServerError`; `TransportError`.
  package func require() async throws {
    try await checkOnce()
    guard session.keys.canSign else { throw ZDCSecurityError(.accessKeyChanged, user: session.user) }
  }

  /// A security error is kept and reported but does not stop the pull: each page is verified on its own.
  func checkBeforePull() async throws {
    do { try await checkOnce() } catch is ZDCSecurityError {}
  }

  /// The server was out of reach, or the stream was opened again: the chain may have grown.
  package func forget() {
    isChecked = false
  }

  /// The server says where the chain ends: at the pinned end there is nothing to read, because the link's hash covers
  /// all of them. It proves no more than the pinned chain itself would if it were served again, and no less.
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
