internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

// Letters about keys of zones that wait in the mailbox (PROTOCOL 3.11, "Keys of zones"). They get no node in the inbox.

extension MessageReceiver {
  /// Answers requests and takes keys, then deletes the letters. A member whose request is not answered asks again later.
  func take(zoneKeys messages: [MessageBody], _ inbox: InboxWriter) async throws {
    let answers = try await session.database.asyncReadWrite { transaction in
      try messages.compactMap { message -> (letter: ZoneKeyLetter, recipient: UserID)? in
        guard let letter = message.zoneKey else { return nil }
        let sender = message.fields.sender
        guard letter.key == nil else {
          try take(letter, from: sender, transaction)
          return nil
        }
        return try answer(to: letter, from: sender, transaction).map { ($0, sender) }
      }
    }
    try await ZoneKeyRequests(session: session).send(answers)
    for fields in messages.map(\.fields) {
      try await session.api.deleteMessage(MessageName(sender: fields.sender, id: fields.id), in: inbox.tree)
    }
  }

  /// Returns the key, if the verified list in force names the user as a reader. A verified user whose words have changed
  /// gets none until this user has accepted the change, as in a new list.
  private func answer(
    to request: ZoneKeyLetter, from sender: UserID, _ transaction: ZDCReadWriteTransaction
  ) throws -> ZoneKeyLetter? {
    guard let row = try transaction.zones.zone(localUser: session.localUser, request.zone),
      let list = row.head?.acl.fields, list.zoneKeyGen == request.zoneKeyGen, row.unreadableReason == nil,
      let key = row.key, row.appTreeID == session.appTreeID,
      list.entry(for: sender)?.permissions.contains(.read) == true,
      transaction.user(id: sender.text)?.identity != .changed
    else { return nil }
    return ZoneKeyLetter(zone: request.zone, zoneKeyGen: request.zoneKeyGen, key: key)
  }

  /// Keeps a key that a member has sent. The commitment in the list in force shows that it is the zone's key.
  private func take(_ answer: ZoneKeyLetter, from sender: UserID, _ transaction: ZDCReadWriteTransaction) throws {
    guard let row = try transaction.zones.zone(localUser: session.localUser, answer.zone), let key = answer.key,
      row.unreadableReason != nil, let list = row.head?.acl.fields, list.zoneKeyGen == answer.zoneKeyGen
    else { return }
    guard key.commitments == list.commitments else {
      let error = ZDCSecurityError(.keyCommitmentMismatch, zone: row.zone, user: sender)
      try transaction.record(error, localUser: session.localUser, zone: row.id, atMs: session.now())
      return transaction.afterCommit { [events = session.events] in events.report(error) }
    }
    session.sentKeys.withLock { $0[row.id] = key }
  }
}
