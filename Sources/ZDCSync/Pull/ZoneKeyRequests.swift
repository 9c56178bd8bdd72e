internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Asks other members for a zone's key when the user's own grant is missing or does not hold it (PROTOCOL 3.11, "Keys of
/// zones"). Only the user can check that grant, so a member who may change the list can lock the user out with it.
struct ZoneKeyRequests: Sendable {
  let session: SyncSession

  /// The most members that are asked at a time. The owner is one of them.
  private static let recipients = 4
  /// The pause after the first request. It doubles with each.
  private static let firstPauseMs: UInt64 = 600_000
  private static let longestPauseMs: UInt64 = 86_400_000

  /// Takes the key that a member has sent, if there is one. The pull that follows reads the nodes.
  func takeSentKey(of zone: Int64) async throws {
    guard let key = session.sentKeys.withLock({ $0.removeValue(forKey: zone) }) else { return }
    try await session.database.asyncReadWrite { transaction in
      guard var row = try transaction.zones.zone(id: zone), row.unreadableReason != nil,
        key.commitments == row.head?.acl.fields.commitments
      else { return }
      (row.key, row.keyError) = (key, nil)
      try LogNodeStore(db: transaction.database, zone: zone).retry(row.zone.root)
      try transaction.operations.retryUnreadable(zone: zone)
      try transaction.zones.update(row)
    }
  }

  /// Asks for the zone's key if it is missing. The zone's log is followed without the key.
  func ask(_ zone: Int64) async throws {
    guard let (letter, members) = try await missing(zone) else { return }
    var pause = session.keyRequests.withLock { $0[zone] } ?? KeyRequestPause(zoneKeyGen: letter.zoneKeyGen)
    if pause.zoneKeyGen != letter.zoneKeyGen { pause = KeyRequestPause(zoneKeyGen: letter.zoneKeyGen) }
    guard pause.untilMs <= session.now() else { return }
    try await send(members.map { (letter, $0) })
    pause.untilMs = session.now() + min(Self.firstPauseMs << min(pause.count, 16), Self.longestPauseMs)
    pause.count += 1
    session.keyRequests.withLock { [pause] in $0[zone] = pause }
  }

  /// Returns what to ask for, and whom; nil if nothing is missing.
  private func missing(_ zone: Int64) async throws -> (letter: ZoneKeyLetter, members: [UserID])? {
    try await session.database.asyncRead { [session] transaction in
      guard let row = try transaction.zones.zone(id: zone), row.unreadableReason != nil,
        let list = row.head?.acl.fields,
        row.appTreeID == session.appTreeID, list.entry(for: session.user) != nil
      else { return nil }
      let others = list.entries.map(\.user).filter { $0 != session.user && $0 != list.owner }.shuffled()
      let asked = (list.owner == session.user ? [] : [list.owner]) + others
      let reachable = try asked.filter { try !transaction.contacts.contact(of: $0).isBlocked }
      let letter = ZoneKeyLetter(zone: row.zone, zoneKeyGen: list.zoneKeyGen)
      return (letter, Array(reachable.prefix(Self.recipients)))
    }
  }

  /// Delivers letters to users whose chains are known. A mailbox has one letter of each kind about a key at most, so
  /// sending one again changes nothing.
  ///
  /// A refusal of the server is reported and changes nothing else: the key is asked for again later, and neither a pull nor
  /// the user's other messages depend on it.
  func send(_ letters: [(letter: ZoneKeyLetter, recipient: UserID)]) async throws {
    guard !letters.isEmpty else { return }
    do { try await deliver(letters) } catch let error as ServerError { session.events.report(error) }
  }

  private func deliver(_ letters: [(letter: ZoneKeyLetter, recipient: UserID)]) async throws {
    let (keys, refused) = try await session.identities.recipients(
      Array(Set(letters.map(\.recipient))), own: session.keys)
    for error in refused { session.events.report(error) }
    let device = try await session.database.asyncReadWrite { [session] in try $0.sendingDevice(session.localUserID) }
    let envelopes = try letters.compactMap { letter, recipient -> MessageEnvelope? in
      guard let key = keys[recipient] else { return nil }
      return try session.envelope(fields(letter, recipient, key, device), key)
    }
    guard !envelopes.isEmpty else { return }
    _ = try await session.api.deliver(envelopes.map(\.bytes))
  }

  private func fields(
    _ letter: ZoneKeyLetter, _ recipient: UserID, _ key: RecipientKey, _ device: UInt64
  ) -> MessageBody.Fields {
    MessageBody.Fields(
      id: letter.messageID(from: session.user, to: recipient), sender: session.user, senderGen: session.keys.signGen,
      device: device, recipient: recipient,
      inbox: .derive(owner: recipient, trunk: .inbox, appTreeID: session.appTreeID), recipientEncGen: key.encGen,
      seq: 1, timeMs: session.now(), kind: letter.key == nil ? .keyRequest : .keyAnswer, payload: letter.payload)
  }
}
