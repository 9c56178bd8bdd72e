internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

// Burns that wait in the mailbox: a sender asks for the deletion of a message of theirs (PROTOCOL 3.11, "Burns").

extension MessageReceiver {
  /// The nodes that burns put and delete.
  private struct BurnDraft: Sendable {
    /// Nodes that the log has not had. A node that the log has had is never taken over.
    var placeholders: [ReceivedMessage] = []
    /// The burned messages in the inbox.
    var deletions: [InboxWriter.Deletion] = []
  }

  /// Deletes the burned messages, and makes sure that those that have not come yet are not taken over.
  func burn(_ burns: [MessageBody], _ inbox: InboxWriter, _ taken: inout Taken) async throws {
    let draft = try await session.database.asyncRead { try makeDraft(burns, $0) }
    let timeMs = session.now()
    let records = try draft.placeholders.map { try inbox.record(of: $0, timeMs: timeMs) }
    let commit = try inbox.commit(records, deleting: draft.deletions)
    switch try await push(records, commit) {
    case .accepted: try await removePlaceholders(records, inbox.following(commit))
    case .headMismatch(let page): taken.pulled += try await ZonePuller(session: session, zone: zone).take(page)
    }
    taken.pulled += try await ZonePuller(session: session, zone: zone).pull()
  }

  private func push(_ records: [NodeRecord], _ commit: ZoneCommit) async throws -> PushAnswer {
    var request = Bundle.Writer()
    for record in records { request.append(record: record.bytes) }
    request.append(commit: commit.bytes)
    return try await session.api.push(request.bytes)
  }

  /// Deletes the placeholders again, before any device reads them. If that fails, a device that reads them deletes them.
  private func removePlaceholders(_ records: [NodeRecord], _ inbox: InboxWriter) async throws {
    let deletions = records.map { InboxWriter.Deletion(node: $0.fields.node, record: $0.hash) }
    _ = try await push([], try inbox.commit([], deleting: deletions))
  }

  private func makeDraft(_ burns: [MessageBody], _ transaction: ZDCReadTransaction) throws -> BurnDraft {
    let leaves = transaction.leaves(zone: zone)
    var draft = BurnDraft()
    var seen: Set<NodeID> = []
    let burned = Set(burns.compactMap { burn in burn.burned.map { NodeID(message: $0, from: burn.fields.sender) } })
    for burn in burns {
      let fields = burn.fields
      guard let message = burn.burned else { continue }
      for id in [fields.id, message] {
        let placeholder = ReceivedMessage(placeholderFor: id, fields)
        let node = placeholder.node
        guard seen.insert(node).inserted else { continue }
        if let leaf = try leaves.leaf(node) {
          // The user may have moved one burned message below another, which is deleted with all below it.
          guard try leaves.ancestors(of: node).allSatisfy({ !burned.contains($0) }) else { continue }
          draft.deletions.append(
            InboxWriter.Deletion(
              node: node, record: leaf.record,
              descendants: try leaves.descendantCount(of: node, upTo: Limits.deletedDescendants)))
        } else if try !transaction.messages.isSeen(node, zone: zone) {
          draft.placeholders.append(placeholder)
        }
      }
    }
    return draft
  }
}

extension ReceivedMessage {
  fileprivate init(placeholderFor id: MessageID, _ fields: MessageBody.Fields) {
    self.init(sender: fields.sender, senderGen: fields.senderGen, device: fields.device, seq: 0, id: id)
  }
}
