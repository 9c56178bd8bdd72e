internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

// Profiles that wait in the mailbox. Of each user, only the newest one is taken over, in the place of the one before.

extension MessageReceiver {
  /// Leaves out profiles that are no newer than others of their users, and deletes them from the mailbox. They were
  /// replaced, or are replays.
  func withoutOldProfiles(_ messages: [MessageBody], _ inbox: InboxWriter) async throws -> [MessageBody] {
    var newest = try await versions(of: messages.filter { $0.profile != nil }.map(\.fields.sender))
    guard !newest.isEmpty else { return messages }
    var (kept, old): ([MessageBody], [MessageBody]) = ([], [])
    // The newest first, so that the first one of a user that is new is the one to keep.
    for message in messages.sorted(by: { $0.fields.seq > $1.fields.seq }) where message.profile != nil {
      let (sender, version) = (message.fields.sender, message.fields.seq)
      if version > newest[sender, default: 0] { kept.append(message) } else { old.append(message) }
      newest[sender] = max(version, newest[sender, default: 0])
    }
    for message in old {
      let name = MessageName(sender: message.fields.sender, id: message.fields.id)
      try await session.api.deleteMessage(name, in: inbox.tree)
    }
    return messages.filter { $0.profile == nil } + kept
  }

  private func versions(of users: [UserID]) async throws -> [UserID: UInt64] {
    guard !users.isEmpty else { return [:] }
    return try await session.database.asyncRead { [session] transaction in
      try users.reduce(into: [:]) { versions, user in
        versions[user] =
          try transaction.profiles.profile(of: user, localUser: session.localUser, tree: session.appTreeID)?.version
          ?? 0
      }
    }
  }

  /// Returns the nodes that the log has of earlier profiles of the same users.
  func nodes(ofProfilesBefore messages: some Collection<MessageBody>) async throws -> [LogNode] {
    let users = messages.filter { $0.profile != nil }.map(\.fields.sender)
    guard !users.isEmpty else { return [] }
    return try await session.database.asyncRead { [session, zone] transaction in
      try users.compactMap { user in
        let known = try transaction.profiles.profile(of: user, localUser: session.localUser, tree: session.appTreeID)
        return try known.flatMap { try transaction.leaves(zone: zone).leaf($0.node) }
      }
    }
  }
}
