internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Queues the user's own profile for the people with whom the user shares (PROTOCOL 3.11, "Profiles").
///
/// The device that has set the profile sends it to all of them, also to those who come later. The user's other devices
/// send it to the people whom they add themselves. Two devices may send the same version to one person, who gets it once.
struct ProfileDeliveries {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction

  /// Queues the newest version for everyone who does not have it, if this device has set it.
  func queueAll() throws {
    guard let own = try own(), try isSetHere(own) else { return }
    let zones = try transaction.zones.zones(localUser: session.localUser)
    var people: Set<UserID> = []
    for row in zones where row.appTreeID == session.appTreeID { people.formUnion(Self.people(row)) }
    try queue(own, to: people)
  }

  /// Queues it for the people of a zone whose access list has changed, or was read for the first time.
  ///
  /// - Parameters:
  ///   - before: The list before; nil at first.
  ///   - isOwn: Whether this device has made the change.
  func queue(for zone: ZoneRow, before: ZoneACL.Fields?, isOwn: Bool) throws {
    let people = Self.people(zone)
    // Most zones have no other member.
    guard people.count > 1, let own = try own() else { return }
    if try isSetHere(own) { return try queue(own, to: people) }
    guard isOwn else { return }
    try queue(own, to: people.subtracting(before?.entries.map(\.user) ?? []))
  }

  private static func people(_ zone: ZoneRow) -> Set<UserID> {
    guard let list = zone.head?.acl.fields else { return [] }
    return Set(list.entries.map(\.user)).union([list.owner])
  }

  private func own() throws -> StoredProfile? {
    try transaction.profiles.profile(of: session.user, localUser: session.localUser, tree: session.appTreeID)
  }

  private func isSetHere(_ own: StoredProfile) throws -> Bool {
    try own.device == transaction.sendingDevice(session.localUserID)
  }

  private func queue(_ own: StoredProfile, to people: Set<UserID>) throws {
    let (localUser, tree, profiles) = (session.localUser, session.appTreeID, transaction.profiles)
    guard people.contains(where: { $0 != session.user }),
      let outbox = try transaction.zones.trunk(.outbox, localUser: localUser, appTreeID: tree)
    else { return }
    var room = Limits.profileRecipients - (try profiles.count(ofVersion: own.version, localUser: localUser, tree: tree))
    for user in people.sorted() where room > 0 && user != session.user {
      guard try profiles.sentVersion(to: user, localUser: localUser, tree: tree) < own.version,
        try !transaction.contacts.contact(of: user).isBlocked
      else { continue }
      try profiles.setSent(own.version, to: user, localUser: localUser, tree: tree)
      room -= 1
      if try !profiles.isDeliveryQueued(to: user, outbox: outbox.id) { try queueDelivery(own, to: user, outbox) }
    }
  }

  private func queueDelivery(_ own: StoredProfile, to user: UserID, _ outbox: ZoneRow) throws {
    let now = session.now()
    let message = MessageID(profileVersion: own.version, from: session.user, to: user)
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: outbox.id, kind: .deliver, nodeUUID: UUIDv7.make(atMs: now),
      nodeID: NodeID(message: message, from: session.user), createdMs: now)
    operation.recipient = user
    try transaction.operations.insert(&operation)
    transaction.signal(.queue(localUser: session.localUser))
  }
}
