internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Decides which of the user's devices sends a message of the outbox (PROTOCOL 3.11, "Sending").
///
/// The message's record names the device and the recipients that it has served. Both change with commits of the outbox, so
/// its log decides when two devices send at the same time: the app of the device whose commit says that a recipient
/// was served is notified.
struct OutgoingMessages {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction

  private var store: OutgoingMessageStore { OutgoingMessageStore(transaction) }

  /// The shortest time without news of a message after which another device takes it over. It grows with the age of the
  /// message, so that a recipient who cannot be reached costs few commits.
  static let shortestPauseMs: UInt64 = 10 * 60_000
  /// The most messages that one transaction takes over.
  private static let mostAtOnce = 100

  // MARK: Records of other devices

  /// Notes a version of a message that another device has put.
  func note(_ row: NodeRow, of zone: ZoneRow) throws {
    guard Self.concern(zone), let message = row.unused, !message.recipients.isEmpty else { return }
    let isSentHere = try isSentHere(message)
    if !isSentHere { try dropDeliveries(of: row) }
    guard !isSentHere, message.served.count < message.recipients.count else { return try store.remove(row.id) }
    try store.set(row.id, zone: zone.id, dueMs: session.now() + pause(of: row))
  }

  /// Notes that the user knows the recipients of a new message of another device. Later versions have the same ones.
  func noteRecipients(of row: NodeRow, in zone: ZoneRow) throws {
    guard Self.concern(zone), let recipients = row.unused?.recipients else { return }
    try transaction.messages.noteKnown(recipients, localUser: session.localUser, tree: session.appTreeID)
  }

  /// Keeps the recipients that this device has served and not put yet.
  func keepServed(_ row: inout NodeRow, before: NodeRow, of zone: ZoneRow) throws {
    guard Self.concern(zone), let message = row.unused, let old = before.unused, try isSentHere(message) else { return }
    let served = Set(message.served).union(old.served)
    row.unused?.served = message.recipients.filter(served.contains)
  }

  static func concern(_ zone: ZoneRow) -> Bool { zone.trunk == .outbox && zone.owner == nil && zone.isTrunk }

  private func isSentHere(_ message: RecordPrivate) throws -> Bool {
    try message.sendingDevice == transaction.sendingDevice(session.localUserID)
  }

  private func pause(of row: NodeRow) -> UInt64 {
    let now = session.now()
    let age = now > row.createdMs ? now - row.createdMs : 0
    return UInt64(Double(max(Self.shortestPauseMs, age)) * (1 + session.time.random()))
  }

  /// Another device has taken the message over, and its app will be notified.
  private func dropDeliveries(of row: NodeRow) throws {
    for operation in try transaction.operations.operations(node: row.id) where operation.kind == .deliver {
      try transaction.operations.delete(id: operation.id)
    }
  }

  // MARK: Taking over

  /// Makes this device the one that sends the messages for which it has waited long enough. Nothing is sent before the
  /// log has that.
  func takeOver(in zone: Int64) throws {
    for id in try store.due(zone: zone, nowMs: session.now(), limit: Self.mostAtOnce) {
      guard let row = try transaction.nodes.node(id: id) else { continue }
      try takeOver(row)
    }
  }

  private func takeOver(_ before: NodeRow) throws {
    var row = before
    // Only the first device's app has content that is not in the cloud.
    let canSend = try row.content != nil && row.quarantine == nil && !transaction.isUnread(row)
    guard canSend, let message = row.unused else {
      return try store.set(row.id, zone: row.zone, dueMs: session.now() + pause(of: row))
    }
    row.unused?.sendingDevice = try transaction.sendingDevice(session.localUserID)
    try transaction.nodes.update(row)
    let put = try queue(.modify, row)
    let served = Set(message.served)
    for user in message.recipients where !served.contains(user) {
      try queue(.deliver, row, to: user, insteadOf: message.sendingDevice ?? 0, after: put.id)
      try transaction.messages.setKnown(true, user, localUser: session.localUser, tree: session.appTreeID)
    }
    try store.remove(row.id)
  }

  @discardableResult
  private func queue(
    _ kind: OperationRow.Kind, _ row: NodeRow, to user: UserID? = nil, insteadOf other: UInt64? = nil,
    after put: Int64? = nil
  ) throws -> OperationRow {
    let now = session.now()
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: row.zone, kind: kind, node: row.id, nodeUUID: row.uuid, nodeID: row.nodeID,
      createdMs: now)
    (operation.recipient, operation.changeset) = (user, other.map { withUnsafeBytes(of: $0.bigEndian, Array.init) })
    try transaction.operations.insert(&operation, dependsOn: [put].compactMap(\.self))
    transaction.signal(.queue(localUser: session.localUser))
    return operation
  }

  // MARK: Recipients

  /// Notes that the server has the message for a recipient. The delivery stays queued until the log confirms it, because another
  /// device may have taken the message over in the meantime.
  func setServed(_ delivery: OperationRow, _ row: NodeRow, _ recipient: UserID) throws {
    var row = row
    let served = Set(row.unused?.served ?? []).union([recipient])
    let inOrder = row.unused?.recipients.filter(served.contains)
    row.unused?.served = inOrder ?? []
    try transaction.nodes.update(row)
    // A query for one row: a message may have a delivery for each of many recipients.
    let queued = try transaction.operations.pendingModify(node: row.id, after: delivery.id)
    let put = try queued ?? queue(.modify, row)
    var delivery = delivery
    (delivery.state, delivery.reason, delivery.reasonDetail) = (.pending, .waitingForOperation, put.uuid)
    (delivery.attempts, delivery.notBeforeMs) = (0, 0)
    try transaction.operations.update(delivery)
    try transaction.operations.addDependency(of: delivery.id, on: put.id)
  }
}
