internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

// The state of received messages, and the deletion of sent ones at their recipients.

extension ZDCCloudTransaction {
  /// Marks a received message as read or unread, on all devices of the user.
  ///
  /// The sender does not learn of it. On the other devices, `didDiscoverModifiedNode` is called with `treesystem`.
  ///
  /// ```swift
  /// if let message = cloudTransaction.node(id: messageID) { try cloudTransaction.markAsRead(message) }
  /// ```
  ///
  /// - Returns: The queued operation; nil if the message had this state already.
  /// - Throws: ``ZDCCloudError`` with `invalidParameter` for a node that is no message in the inbox.
  @discardableResult
  public func markAsRead(_ message: ZDCNode, _ isRead: Bool = true) throws -> ZDCCloudOperation? {
    var row = try stored(message)
    guard try transaction.cloudState.facts(ofZone: row.zone).trunk == .inbox, row.unused?.received != nil else {
      throw ZDCCloudError(.invalidParameter, detail: "the node is no message in the inbox")
    }
    guard row.unused?.isRead != isRead else { return nil }
    row.unused?.isRead = isRead
    try nodes.update(row)
    return try transaction.zdcOperation(try queueRecord(.modify, row))
  }

  /// Deletes a sent message, and asks its recipients' devices to delete it too.
  ///
  /// The message leaves the outbox. Each recipient to whom it may have been sent gets a sealed request, which the next of
  /// their devices that syncs obeys: it deletes the message from the inbox, or drops it if it comes later. This is a
  /// promise of unmodified clients, not a proof. A recipient may have read, copied or moved the message before, or use a
  /// client that ignores the request.
  ///
  /// ```swift
  /// if let message = cloudTransaction.node(id: messageID) { try cloudTransaction.burn(message) }
  /// ```
  ///
  /// - Throws: ``ZDCCloudError`` with `invalidParameter` for a node that is no message in the outbox.
  public func burn(_ message: ZDCNode) throws {
    let row = try stored(message)
    guard try transaction.cloudState.facts(ofZone: row.zone).trunk == .outbox,
      let recipients = row.unused?.recipients, !recipients.isEmpty, let id = MessageID(row.nodeID.bytes)
    else { throw ZDCCloudError(.invalidParameter, detail: "the node is no message in the outbox") }
    let untouched = try recipientsWithoutMessage(of: row)
    _ = try delete(row: row)
    for user in recipients where !untouched.contains(user) { try queueBurn(of: id, row, at: user) }
  }

  /// Returns the recipients to whom nothing was sent: this device sends the message, and has not begun to. Once the outbox has
  /// the message, another device may take it over before it reads the deletion.
  private func recipientsWithoutMessage(of row: NodeRow) throws -> Set<UserID> {
    guard try row.unused?.sendingDevice == transaction.sendingDevice(localUserID), !row.isUploaded,
      try !operations.nodesInFlight(zone: row.zone).contains(row.id)
    else { return [] }
    let deliveries = try operations.operations(node: row.id).filter { $0.kind == .deliver }
    let untried = deliveries.filter { $0.state == .pending && $0.attempts == 0 }.compactMap(\.recipient)
    return Set(untried).subtracting(row.unused?.served ?? [])
  }

  private func queueBurn(of message: MessageID, _ row: NodeRow, at user: UserID) throws {
    guard let sender = UserID(text: localUserID) else { throw ZDCError(.localUserNotFound) }
    let id = MessageID(burning: message, from: sender, to: user)
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: row.zone, kind: .deliver, nodeUUID: row.uuid,
      nodeID: NodeID(message: id, from: sender), createdMs: now)
    (operation.recipient, operation.changeset) = (user, message.bytes)
    try operations.insert(&operation)
    signalQueue()
  }
}
