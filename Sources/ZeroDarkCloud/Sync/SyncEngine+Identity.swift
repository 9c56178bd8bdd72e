internal import ZDCProtocol

// The user's own identity chain, read again at each start and each reconnection (PROTOCOL 3.2, 3.4).

extension SyncEngine {
  /// Compares the server's chain with the pinned one, once until ``forgetIdentityCheck()``.
  ///
  /// Nothing is pushed before it holds: a server that denies what the account was does not get its next change.
  ///
  /// - Throws: `ZDCSecurityError`, which is kept in the database; `ServerError`; `TransportError`.
  func requireIdentity() async throws {
    if !isIdentityChecked { try await checkIdentity() }
    guard session.keys.canSign else { throw ZDCSecurityError(.accessKeyChanged, user: session.user) }
  }

  /// What is pulled is verified by itself, so a pull goes on; the error is kept and reported.
  func checkIdentityBeforePull() async throws {
    guard !isIdentityChecked else { return }
    do { try await checkIdentity() } catch is ZDCSecurityError {}
  }

  /// The server was out of reach, or the stream was opened anew: the chain may have gone on.
  func forgetIdentityCheck() {
    isIdentityChecked = false
  }

  /// The server says where the chain ends: at the pinned end there is nothing to read, because the link's hash covers
  /// all of them. It proves no more than the pinned chain itself would if it were served again, and no less.
  func acceptIdentity(_ told: ChainHead?) {
    let identity = session.keys.identity
    guard let told, told.seq == identity.seq, told.head == identity.head else { return }
    isIdentityChecked = true
    keptIdentityError = nil
  }

  private func checkIdentity() async throws {
    do {
      if let keys = try await session.refreshIdentity() {
        session.currentKeys.withLock { $0 = keys }
        if keys.isAccessKeyChanged { try await keep(ZDCSecurityError(.accessKeyChanged, user: session.user)) }
      }
      isIdentityChecked = true
      keptIdentityError = nil
    } catch let error as ZDCSecurityError {
      let error = error.with(user: session.user)
      try await keep(error)
      throw error
    }
  }

  /// Once, however often it is met in a row.
  private func keep(_ error: ZDCSecurityError) async throws {
    session.events.report(error)
    guard keptIdentityError != error.code else { return }
    try await session.database.asyncReadWrite { [session] transaction in
      try transaction.record(error, localUser: session.localUser, zone: nil, atMs: session.now())
    }
    keptIdentityError = error.code
  }
}
