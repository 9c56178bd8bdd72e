internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Finds messages that were sent and never came: numbers below that of a message in the inbox (PROTOCOL 3.11, "Gaps").
///
/// Numbers are noted with the records that have them, and compared at the end of a pull, because messages may come in any
/// order. What is missing then is reported once.
struct MessageGaps {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction
  let zone: ZoneRow

  private var store: MessageNumberStore { MessageNumberStore(transaction, inbox: zone.id) }

  static func concern(_ zone: ZoneRow) -> Bool { zone.trunk == .inbox && zone.owner == nil && zone.isTrunk }

  /// Notes the number of a message. Only the user's own devices, which have opened it, say where a message comes from.
  func note(_ opened: OpenedRecord) throws {
    guard Self.concern(zone), let received = opened.secrets.received, opened.record.fields.writer == session.user
    else { return }
    // A placeholder may stand for a message that was burned before any device took it over, and whose number none has seen.
    if received.isPlaceholder { try store.countUnread([received.node]) }
    try store.setRead(received.node)
    // The number of a profile is a version, and versions may be left out. Placeholders have no number.
    if opened.secrets.profile == nil, !received.isPlaceholder { try store.insert(received) }
  }

  /// Compares the new numbers with the highest one of each device, unless records of the inbox are still missing.
  func settle() throws {
    guard Self.concern(zone), try transaction.leaves(zone: zone.id).pendingCount() == 0 else { return }
    let inbox = try store.inbox()
    for (numbers, unread) in try store.new() { try settle(numbers, unread: unread, inbox) }
    try store.forgetNew()
    // A device that reads the inbox for the first time cannot know what its user had deleted before.
    if inbox.isBaseline { try store.endBaseline() }
  }

  private func settle(
    _ numbers: MessageNumbers, unread: UInt64, _ inbox: (unread: UInt64, isBaseline: Bool)
  ) throws {
    if numbers.highest == nil {
      let devices = try store.devices(of: numbers.sender)
      // The first device beyond the limit has a row too, so that it is reported once.
      guard devices <= Limits.messageDevices else { return }
      if devices == Limits.messageDevices, !inbox.isBaseline { try report(numbers) }
    }
    // Another device of the user may have taken over and deleted as many before this device read them.
    let isExplained = inbox.isBaseline || numbers.missing <= inbox.unread - min(unread, inbox.unread)
    if !isExplained { try report(numbers) }
    try store.set(numbers, unread: inbox.unread)
  }

  private func report(_ numbers: MessageNumbers) throws {
    var error = ZDCSecurityError(.messageGap, zone: zone.zone, user: numbers.sender)
    (error.device, error.missing) = (numbers.device, numbers.missingRange)
    try transaction.record(error, localUser: session.localUser, zone: zone.id, atMs: session.now())
    transaction.afterCommit { [events = session.events, error] in events.report(error) }
  }
}

extension SyncSession {
  /// Notes that the first pull of a zone begins, if it is the inbox.
  func beginMessages(in row: ZoneRow) async throws {
    guard MessageGaps.concern(row) else { return }
    try await database.asyncReadWrite { try MessageNumberStore($0, inbox: row.id).beginBaseline() }
  }

  /// Compares the numbers of messages after a pull of the inbox.
  func findMessageGaps(in row: ZoneRow) async throws {
    guard MessageGaps.concern(row) else { return }
    let isDue = try await database.asyncRead { transaction in
      let store = MessageNumberStore(transaction, inbox: row.id)
      return try !store.isEmpty() || store.inbox().isBaseline
    }
    guard isDue else { return }
    try await database.asyncReadWrite { transaction in
      try MessageGaps(session: self, transaction: transaction, zone: row).settle()
    }
  }
}
