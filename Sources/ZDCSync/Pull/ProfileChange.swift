internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Stores the profile that a node of the inbox brings, instead of showing the node.
///
/// One of the user's devices has verified it before it put the node, and no one else writes to the inbox.
struct ProfileChange {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction
  let zone: ZoneRow

  /// - Returns: Whether the node is a profile.
  func apply(_ opened: OpenedRecord) throws -> Bool {
    guard let profile = opened.secrets.profile, let received = opened.secrets.received, zone.trunk == .inbox,
      zone.owner == nil, opened.record.fields.writer == session.user
    else { return false }
    let known = try transaction.profiles.profile(of: received.sender, localUser: zone.localUser, tree: zone.appTreeID)
    guard received.seq > known?.version ?? 0 else { return true }
    let stored = StoredProfile(
      user: received.sender, version: received.seq, device: received.device, node: received.node, profile: profile)
    try transaction.profiles.set(stored, localUser: zone.localUser, tree: zone.appTreeID)
    if received.sender == session.user { try finish(profile) }
    if known?.profile != profile { announce(received.sender, profile) }
    return true
  }

  /// Removes the queued change that asked for this profile, and sends the profile to other people.
  private func finish(_ profile: UserProfile) throws {
    if let queued = try transaction.profiles.queued(inbox: zone.id), queued.changeset == profile.bytes {
      try transaction.operations.delete(id: queued.id)
    }
    try ProfileDeliveries(session: session, transaction: transaction).queueAll()
  }

  /// Notifies the app. Another device may have met the user, and this one may not know their keys yet.
  private func announce(_ user: UserID, _ profile: UserProfile) {
    let known =
      transaction.user(id: user.text) ?? ZDCUser(uuid: user.text, identity: .seen, name: profile.shownName)
    session.delegate().didDiscoverModifiedUser(known, forLocalUserID: session.localUserID, transaction: transaction)
  }
}
