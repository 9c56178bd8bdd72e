internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol

/// An answer that cannot be followed, with the evidence that it provides.
struct Doubt: Error {
  var error: ZDCSecurityError
  var evidence: HeadRules.Evidence
  /// Whether a retry is pointless, because the signed log names the answer's objects by their hashes.
  var isFinal = false

  init(_ error: ZDCSecurityError, _ evidence: HeadRules.Evidence) {
    (self.error, self.evidence) = (error, evidence)
  }

  init(_ error: ZDCSecurityError, isSigned: Bool) {
    self.init(error, HeadRules.evidence(of: error.code, isSigned: isSigned))
  }
}

extension Doubt {
  /// Runs a body, and turns its errors about the log into doubts.
  ///
  /// - Parameter isSigned: Returns whether members have signed what the body reads.
  static func catching<Result>(
    _ zone: ZoneID, isSigned: () -> Bool = { false }, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let error as ZDCSecurityError where HeadRules.isAboutLog(error.code) {
      throw Doubt(error.with(zone: zone), isSigned: isSigned())
    }
  }
}

extension PageContents {
  /// Returns whether members have signed every commit of the page.
  func isSigned(by writers: WriterKeys) -> Bool {
    !commits.isEmpty && commits.allSatisfy { $0.commit.isSigned(by: writers) }
  }
}

extension ZoneCommit {
  func isSigned(by writers: WriterKeys) -> Bool { (try? checkSigner(writers)) != nil }
}

extension ZoneACL {
  func isSigned(by writers: WriterKeys) -> Bool { (try? checkSigner(writers)) != nil }
}

/// Stores what follows from answers that cannot be followed: the zone stalls, or is frozen (PROTOCOL 3.7, "Pins").
struct DoubtStore {
  let session: SyncSession
  let zone: Int64

  /// Lifts a freeze or stall after the server's log extends the pin again.
  func lift(_ row: ZoneRow) async throws {
    guard row.frozen != nil || row.doubt != nil else { return }
    try await session.database.asyncReadWrite { [zone] transaction in
      guard var row = try transaction.zones.zone(id: zone) else { return }
      (row.frozen, row.isProven, row.doubt) = (nil, false, nil)
      try transaction.zones.update(row)
    }
  }

  /// Freezes the zone, or stores why it stalls. The error is recorded and reported when the state begins.
  func conclude(_ doubt: Doubt) async throws -> ZDCSecurityError {
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

  /// Records and reports an error that freezes nothing. The next pull may or may not encounter it again.
  func report(_ error: ZDCSecurityError) async throws {
    try await session.database.asyncReadWrite { [session, zone] transaction in
      try transaction.record(error, localUser: session.localUser, zone: zone, atMs: session.now())
    }
    session.events.report(error)
  }
}
