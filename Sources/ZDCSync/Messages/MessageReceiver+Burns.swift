internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

// Burns that wait in the mailbox: a sender asks for the deletion of a message of theirs (PROTOCOL 3.11, "Burns").

extension MessageReceiver {
  /// The nodes that burns put and delete.
  fileprivate struct BurnDraft: Sendable {
    /// Nodes that the log has not had. A node that the log has had is never taken over.
    var placeholders: [ReceivedMessage] = []
    /// The burned messages in the inbox, or nodes below one that has too many for one commit.
    var deletions: [InboxWriter.Deletion] = []
    /// The number of nodes below the burned messages that the commit may still delete.
    var room = Limits.deletedDescendants
  }

  /// Deletes the burned messages, and makes sure that those that have not come yet are not taken over.
  ///
  /// Burns that do not fit into one commit stay in the mailbox for the next one.
  func burn(_ burns: [MessageBody], _ inbox: InboxWriter, _ taken: inout Taken) async throws {
    let draft = try await session.database.asyncRead { try makeDraft(burns, $0) }
    // A pull may have found the placeholders of another device since the list of messages was made.
    guard !draft.isEmpty else { return }
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
    guard !records.isEmpty else { return }
    let deletions = records.map { InboxWriter.Deletion(node: $0.fields.node, record: $0.hash) }
    _ = try await push([], try inbox.commit([], deleting: deletions))
  }

  private func makeDraft(_ burns: [MessageBody], _ transaction: ZDCReadTransaction) throws -> BurnDraft {
    let leaves = transaction.leaves(zone: zone)
    var draft = BurnDraft()
    let burned = Set(burns.compactMap(\.burnedNode))
    var isDeleted: [NodeID: Bool] = [:]
    for burn in burns {
      if let top = try top(of: burn, burned, leaves) {
        if isDeleted[top] == nil { isDeleted[top] = try draft.delete(top, leaves) }
        // The server drops the burn with its placeholder, so that comes with the last of the deletions.
        guard isDeleted[top] == true else { continue }
      }
      try addPlaceholders(of: burn, to: &draft, transaction)
    }
    if draft.isEmpty, let first = isDeleted.keys.first { try draft.deletePart(below: first, leaves) }
    return draft
  }

  /// Returns the node whose deletion deletes the burned message: the user may have moved it below another one that is
  /// burned, too. Nil if the inbox does not have the message.
  private func top(of burn: MessageBody, _ burned: Set<NodeID>, _ leaves: LogNodeStore) throws -> NodeID? {
    guard let node = burn.burnedNode, try leaves.leaf(node) != nil else { return nil }
    return try leaves.ancestors(of: node).last(where: burned.contains) ?? node
  }

  private func addPlaceholders(
    of burn: MessageBody, to draft: inout BurnDraft, _ transaction: ZDCReadTransaction
  ) throws {
    for id in [burn.fields.id, burn.burned].compactMap(\.self) {
      let placeholder = ReceivedMessage(placeholderFor: id, burn.fields)
      let isKnown = draft.placeholders.contains { $0.node == placeholder.node }
      guard try !isKnown && !transaction.messages.isSeen(placeholder.node, zone: zone) else { continue }
      draft.placeholders.append(placeholder)
    }
  }
}

extension MessageReceiver.BurnDraft {
  fileprivate var isEmpty: Bool { placeholders.isEmpty && deletions.isEmpty }

  /// Deletes a node with all below it.
  ///
  /// - Returns: False if that exceeds the room of the commit.
  fileprivate mutating func delete(_ node: NodeID, _ leaves: LogNodeStore) throws -> Bool {
    let below = try leaves.descendantCount(of: node, upTo: room)
    guard below <= room, let leaf = try leaves.leaf(node) else { return false }
    deletions.append(InboxWriter.Deletion(node: node, record: leaf.record, descendants: below))
    room -= below
    return true
  }

  /// Deletes branches below a node that has too many nodes below it for one commit.
  fileprivate mutating func deletePart(below node: NodeID, _ leaves: LogNodeStore) throws {
    for child in try leaves.children(of: node, limit: Limits.commitOperations) {
      guard deletions.count < Limits.commitOperations else { return }
      guard try delete(child.node, leaves) else { return try deletePart(below: child.node, leaves) }
    }
  }
}

extension MessageBody {
  /// The node of the message that a burn names. A burn names no message of another sender.
  fileprivate var burnedNode: NodeID? { burned.map { NodeID(message: $0, from: fields.sender) } }
}

extension ReceivedMessage {
  fileprivate init(placeholderFor id: MessageID, _ fields: MessageBody.Fields) {
    self.init(sender: fields.sender, senderGen: fields.senderGen, device: fields.device, seq: 0, id: id)
  }
}
