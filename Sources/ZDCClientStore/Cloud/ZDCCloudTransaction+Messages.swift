internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

// Messages to other users. A message is a node of the outbox; each recipient is a queued operation.

extension ZDCCloudTransaction {
  /// Queues a message to one or more users.
  ///
  /// The message is a node in the outbox, with the name that its ``ZDCNode/cloudID`` is. Links and tags work as for any
  /// node. When the message's turn has come, the delegate is asked for its content with
  /// `data(forMessage:transaction:)`, which has no metadata. The user's other devices get a copy in their outbox, and each
  /// recipient gets it sealed for them. Content above 983,040 bytes is uploaded once for all recipients, who may read it
  /// while the message is in the outbox, and have it in their inbox after that. `didSendMessage` follows for each recipient, in the
  /// transaction in which that recipient's operation leaves the queue.
  ///
  /// If a recipient closes their account after the call, the others still get the message. That recipient's operation
  /// is tried again after pauses, and waits with `serverSaid` and the detail `accountClosed`, until the app deletes the
  /// message.
  ///
  /// ```swift
  /// let message = try cloudTransaction.sendMessage(toRecipients: [bob], withDependencies: permsOps)
  /// cloudTransaction.setTag(listNodeID, forNodeID: message.uuid, withIdentifier: "listNodeID")
  /// ```
  ///
  /// - Parameters:
  ///   - recipients: The users, at most 256. This device must know their identities.
  ///   - dependencies: Queued operations that must be done before anything of the message is sent. Those that are done
  ///     already count as done.
  /// - Returns: The message's node.
  /// - Throws: ``ZDCCloudError``: `missingReceiver` without a recipient, `invalidParameter` for one who is named twice,
  ///   for the local user, for a user with a closed account or for too many, `unknownUser` for one whose identity this
  ///   device does not know, `missingParent` before the first pull.
  @discardableResult
  public func sendMessage(
    toRecipients recipients: [ZDCUser], withDependencies dependencies: [ZDCCloudOperation]? = nil
  ) throws -> ZDCNode {
    let users = try checked(recipients)
    let row = try insertMessage(to: users)
    let before = try rowIDs(dependencies ?? [])
    let create = try queue(.create, row, dependsOn: before)
    let copy = try queue(.putData, row, dependsOn: before + [create.id])
    for user in users { try queueDelivery(of: row, to: user, dependsOn: before + [create.id, copy.id]) }
    return try transaction.zdcNode(row)
  }

  /// Queues a signal: a message to one user of which the sender keeps no copy.
  ///
  /// Until it is sent, it is a node in the outbox of this device only. The node is gone when `didSendMessage` returns.
  /// Its content must be at hand, so no promise, and has at most 983,040 bytes: a larger one is parked with
  /// `sectionTooLarge` of ``ZDCError``. All else is as in ``sendMessage(toRecipients:withDependencies:)``.
  ///
  /// ```swift
  /// let signal = try cloudTransaction.sendSignal(toRecipient: bob)
  /// cloudTransaction.setTag("typing", forNodeID: signal.uuid, withIdentifier: "kind")
  /// ```
  ///
  /// - Returns: The signal's node.
  /// - Throws: As ``sendMessage(toRecipients:withDependencies:)``.
  @discardableResult
  public func sendSignal(
    toRecipient recipient: ZDCUser, withDependencies dependencies: [ZDCCloudOperation]? = nil
  ) throws -> ZDCNode {
    let users = try checked([recipient])
    let row = try insertMessage(to: users)
    for user in users { try queueDelivery(of: row, to: user, dependsOn: try rowIDs(dependencies ?? [])) }
    return try transaction.zdcNode(row)
  }

  // MARK: Checks

  private func checked(_ recipients: [ZDCUser]) throws -> [UserID] {
    guard !recipients.isEmpty else { throw ZDCCloudError(.missingReceiver) }
    guard recipients.count <= Limits.envelopesPerRequest else {
      throw ZDCCloudError(.invalidParameter, detail: "a message has at most \(Limits.envelopesPerRequest) recipients")
    }
    let users = try recipients.map(recipient)
    guard Set(users).count == users.count else {
      throw ZDCCloudError(.invalidParameter, detail: "a recipient is named twice")
    }
    return users
  }

  private func recipient(_ value: ZDCUser) throws -> UserID {
    guard value.uuid != localUserID else {
      throw ZDCCloudError(.invalidParameter, detail: "a message to the local user")
    }
    guard let user = UserID(text: value.uuid) else { throw ZDCCloudError(.unknownUser) }
    let isLocal = try transaction.localUsers.readyIDs().contains(user)
    guard try isLocal || transaction.users.chain(of: user) != nil else { throw ZDCCloudError(.unknownUser) }
    guard transaction.user(id: value.uuid)?.identity != .closed else {
      throw ZDCCloudError(.invalidParameter, detail: "the recipient has closed the account")
    }
    return user
  }

  // MARK: Queueing

  private func insertMessage(to users: [UserID]) throws -> NodeRow {
    guard let outbox = try root(.outbox) else {
      throw ZDCCloudError(.missingParent, detail: "the outbox has not been pulled yet")
    }
    let id = NodeID.random()
    let name = try fold(id.text, nil)
    var row = NodeRow(
      uuid: UUIDv7.make(atMs: now), zone: outbox.zone, nodeID: id, parent: outbox.id, depth: outbox.depth + 1,
      nameTag: try nodes.nameKeys(of: outbox).nameTag(name), name: name.utf8, key: .random(), keyGen: 1, createdMs: now)
    row.unused = RecordPrivate(name: nil, createdMs: 0, recipients: users)
    row.unused?.sendingDevice = try transaction.sendingDevice(localUserID)
    try nodes.insert(&row)
    return row
  }

  private func queueDelivery(of row: NodeRow, to user: UserID, dependsOn: [Int64]) throws {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: row.zone, kind: .deliver, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID, createdMs: now)
    operation.recipient = user
    try operations.insert(&operation, dependsOn: dependsOn)
    // A recipient is a known sender, so the reply is not a request.
    try transaction.messages.setKnown(true, user, localUser: localUser, tree: treeID)
    signalQueue()
  }
}

extension ZDCReadTransaction {
  package var messages: MessageStore { MessageStore(self) }

  /// The name by which recipients tell this device's messages from those of the user's other devices.
  package func sendingDevice(_ localUserID: String) throws -> UInt64 {
    guard let user = UserID(text: localUserID), let row = try localUsers.user(user) else {
      throw ZDCError(.localUserNotFound)
    }
    let hash = RecordHash(labelledHash: "message-device", user.bytes, row.secrets.deviceID.bytes)
    return hash.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
