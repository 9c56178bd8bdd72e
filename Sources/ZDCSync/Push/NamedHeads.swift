internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Chooses the heads of zones that a message names, inside the transaction that seals it (PROTOCOL 3.11, "Heads").
///
/// A message names no zone whose verified access list does not contain both users. Otherwise it would show the recipient
/// which trees exist and when they change (E-1).
struct NamedHeads {
  private let user: UserID
  private let zones: [ZoneRow]
  private let store: NamedHeadStore

  init(session: SyncSession, transaction: ZDCReadWriteTransaction) throws {
    user = session.user
    zones = try transaction.zones.zones(localUser: session.localUser).filter { $0.appTreeID == session.appTreeID }
    store = NamedHeadStore(transaction)
  }

  /// Returns the heads of shared zones that have changed since they were last named to the recipient, and notes that
  /// this message names them.
  func take(for recipient: UserID, messageSeq: UInt64) throws -> [VerifiedHead] {
    let named = try store.heads(namedTo: recipient)
    let changed = zones.filter { row in
      guard let head = row.head, head.acl.fields.names(user, recipient) else { return false }
      return named[row.id]?.hash != head.hash
    }
    let chosen = MemberHeadRules.choose(
      changed.map { MemberHeadRules.Candidate(zone: $0.id, lastNamed: named[$0.id]?.messageSeq) })
    let heads = Dictionary(uniqueKeysWithValues: changed.compactMap { row in row.head.map { (row.id, $0) } })
    return try chosen.compactMap { candidate in
      guard let head = heads[candidate.zone] else { return nil }
      try store.set(.init(hash: head.hash, messageSeq: messageSeq), zone: candidate.zone, to: recipient)
      return VerifiedHead(zone: head.zone, seq: head.seq, hash: head.hash)
    }.sorted { $0.zone < $1.zone }
  }
}

extension ZoneACL.Fields {
  fileprivate func names(_ user: UserID, _ other: UserID) -> Bool {
    entry(for: user) != nil && entry(for: other) != nil
  }
}
