internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

/// Delivers the messages of an outbox, up to 256 envelopes in a request.
///
/// An envelope is stored before it is sent, and sent until the server's answer is known. Then ``OutgoingMessages`` notes the
/// recipient in the message's record. When the log has that, the recipient's operation leaves the queue, in the
/// transaction that notifies the app.
struct MessageSender: Sendable {
  let session: SyncSession
  let zone: Int64

  /// The most bytes of content that one request delivers.
  private static let requestBytes = 4 << 20

  /// - Parameter due: Deliveries that may go now, in queue order.
  func send(_ due: [OperationRow]) async throws -> ZDCPushSummary {
    let served = try await served(due)
    guard served.isEmpty else { return try await summary(of: try await finish(served)) }
    var envelopes = try await stored(due)
    let isFirstTry = envelopes.isEmpty
    if isFirstTry {
      let (letters, isSomeHeld) = try await letters(for: due)
      guard !letters.isEmpty else { return ZDCPushSummary(triesAgain: isSomeHeld) }
      envelopes = try await seal(letters)
    }
    guard !envelopes.isEmpty else { return ZDCPushSummary(triesAgain: true) }
    session.activity.sends()
    let results = try await session.api.deliver(envelopes.map(\.bytes))
    return try await settle(Array(zip(envelopes, results)), isFirstTry: isFirstTry)
  }

  /// Returns the deliveries of which the log says that their recipients have the message.
  private func served(_ due: [OperationRow]) async throws -> [OperationRow] {
    try await session.database.asyncRead { transaction in
      var served: [Int64: Set<UserID>] = [:]
      return try due.filter { delivery in
        guard let user = delivery.recipient, let node = delivery.node else { return false }
        // Once for each message: a record of many recipients is long.
        let known = try served[node] ?? Set(transaction.nodes.node(id: node)?.unused?.served ?? [])
        served[node] = known
        return known.contains(user)
      }
    }
  }

  /// Returns the envelopes whose answer is unknown, and those of due operations whose callback the app refused.
  private func stored(_ due: [OperationRow]) async throws -> [StoredEnvelope] {
    try await session.database.asyncRead { [zone] transaction in
      try transaction.messages.envelopes(
        zone: zone, orOf: Set(due.map(\.id)), count: Limits.envelopesPerRequest,
        bytes: Limits.commitRequestBytes - (64 << 10))
    }
  }

  // MARK: Content

  /// A message to one recipient, before it is sealed.
  fileprivate struct Letter: Sendable {
    var operation: OperationRow
    var recipient: UserID
    var key: RecipientKey
    var kind: MessageBody.Kind
    var payload: [UInt8]
    /// The version of the profile that is delivered.
    var profileVersion: UInt64?

    /// Whether it gets the next number of this device's messages to the recipient.
    var isNumbered: Bool { profileVersion == nil && kind != .burn }
  }

  /// Collects content and keys for as many deliveries as fit into a request. The others are paused or parked.
  private func letters(for due: [OperationRow]) async throws -> (letters: [Letter], isSomeHeld: Bool) {
    let batch = Array(due.prefix(Limits.envelopesPerRequest))
    let keys = try await recipientKeys(batch.compactMap(\.recipient))
    let source = MessageContents(session: session, zone: zone)
    var contents: [Int64: MessageContents.Content] = [:]
    var letters: [Letter] = []
    var (bytes, isSomeHeld) = (0, false)
    for operation in batch {
      guard let recipient = operation.recipient else { continue }
      // No row has the number 0: all deliveries of the profile have one content.
      let node = operation.node ?? (operation.isBurn ? -operation.id : 0)
      let content: MessageContents.Content
      if let known = contents[node] { content = known } else { content = try await source.content(of: operation) }
      contents[node] = content
      guard let key = keys[recipient], case .payload(let payload, let kind, let profileVersion) = content else {
        try await hold(operation, keys[recipient] == nil ? .unavailable(.accountStateMissing) : content)
        isSomeHeld = true
        continue
      }
      bytes += payload.count + (4 << 10)
      guard letters.isEmpty || bytes <= Self.requestBytes else { break }
      letters.append(
        Letter(
          operation: operation, recipient: recipient, key: key, kind: kind, payload: payload,
          profileVersion: profileVersion))
    }
    return (letters, isSomeHeld)
  }

  private func recipientKeys(_ users: [UserID]) async throws -> [UserID: RecipientKey] {
    let (keys, refused) = try await session.identities.recipients(Array(Set(users)), own: session.keys)
    for error in refused {
      try await session.database.asyncReadWrite { [session, zone] transaction in
        try transaction.record(error, localUser: session.localUser, zone: zone, atMs: session.now())
      }
      session.events.report(error)
    }
    return keys
  }

  private func hold(_ operation: OperationRow, _ content: MessageContents.Content) async throws {
    if case .unavailable(let code) = content { return try await pause(operation, detail: code.rawValue) }
    try await session.database.asyncReadWrite { transaction in
      try transaction.operations.setState(.pending, reason: .noDataFromApp, id: operation.id)
    }
  }

  // MARK: Sealing

  /// Numbers, signs, seals and stores the messages, without those that the app has deleted since.
  private func seal(_ letters: [Letter]) async throws -> [StoredEnvelope] {
    try await session.database.asyncReadWrite { [session] transaction in
      let device = try transaction.sendingDevice(session.localUserID)
      let heads = try NamedHeads(session: session, transaction: transaction)
      var sealed: [UserID: UInt64] = [:]
      var envelopes: [StoredEnvelope] = []
      for letter in letters {
        guard var row = try transaction.operations.operation(id: letter.operation.id), row.state == .pending else {
          continue
        }
        let seq = try number(letter, &sealed, transaction)
        var fields = letter.fields(session, device: device, seq: seq)
        // Numbers of messages say which heads were named; a profile and a burn have none.
        if letter.isNumbered { fields.heads = try heads.take(for: letter.recipient, messageSeq: seq) }
        let envelope = StoredEnvelope(
          operation: row.id, recipient: letter.recipient, seq: seq,
          bytes: try session.envelope(fields, letter.key).bytes)
        try transaction.messages.insert(envelope)
        (row.state, row.reason, row.reasonDetail) = (.inFlight, .inFlight, nil)
        try transaction.operations.update(row)
        envelopes.append(envelope)
      }
      return envelopes
    }
  }

  /// Gives a message the next number, and notes that the recipient gets this version of the profile.
  ///
  /// A message that another device may have delivered gets no number of its own: a recipient who has it already would
  /// never see that one, and report a gap.
  ///
  /// - Parameter sealed: The highest numbers of the messages that are not finished, by users to whom some are sealed now.
  private func number(
    _ letter: Letter, _ sealed: inout [UserID: UInt64], _ transaction: ZDCReadWriteTransaction
  ) throws -> UInt64 {
    let (user, localUser, tree) = (letter.recipient, session.localUser, session.appTreeID)
    if letter.kind == .burn { return 1 }
    if let version = letter.profileVersion {
      try transaction.profiles.setSent(version, to: user, localUser: localUser, tree: tree)
      return version
    }
    let unfinished = try sealed[user] ?? transaction.messages.sealedSeq(to: user, zone: zone)
    sealed[user] = unfinished
    let last = max(try transaction.messages.sentSeq(to: user, localUser: localUser, tree: tree), unfinished)
    guard !letter.operation.isTakenOver else { return max(last, 1) }
    sealed[user] = last + 1
    return last + 1
  }

  // MARK: Answers

  private func settle(
    _ answers: [(StoredEnvelope, DeliveryResult)], isFirstTry: Bool
  ) async throws -> ZDCPushSummary {
    let outcomes = try await session.database.asyncReadWrite { transaction in
      try answers.map { try settle($0, $1, isFirstTry: isFirstTry, transaction) }
    }
    return try await summary(of: outcomes)
  }

  /// Removes deliveries, and notifies the app of each.
  private func finish(_ served: [OperationRow]) async throws -> [Outcome] {
    try await session.database.asyncReadWrite { transaction in
      try served.compactMap { delivery in
        // The app may have deleted the message since.
        guard let operation = try transaction.operations.operation(id: delivery.id), let user = operation.recipient
        else { return nil }
        return try finish(operation, user, transaction)
      }
    }
  }

  private func summary(of outcomes: [Outcome]) async throws -> ZDCPushSummary {
    var summary = ZDCPushSummary()
    for outcome in outcomes {
      switch outcome {
      case .done:
        summary.commits = 1
        summary.operations += 1
      case .refusedByApp(let error):
        session.events.report(error)
        summary.triesAgain = true
      case .waits: summary.triesAgain = true
      }
    }
    summary.isDrained = try await session.database.asyncRead { [session] in
      try $0.operations.isEmpty(localUser: session.localUser)
    }
    return summary
  }

  private enum Outcome: Sendable {
    case done, waits
    case refusedByApp(DelegateError)
  }

  private func settle(
    _ envelope: StoredEnvelope, _ result: DeliveryResult, isFirstTry: Bool, _ transaction: ZDCReadWriteTransaction
  ) throws -> Outcome {
    guard let operation = try transaction.operations.operation(id: envelope.operation) else { return .done }
    if operation.node == nil, result.isFinal {
      try transaction.operations.delete(id: operation.id)
      return .done
    }
    guard result.isStored else {
      try refuse(operation, envelope, result, transaction)
      return .waits
    }
    let row = try operation.node.flatMap { try transaction.nodes.node(id: $0) }
    // Another device of the user has sent the message, so no recipient sees which heads this one names.
    if isFirstTry, result == .exists { try forgetHeads(of: envelope, transaction) }
    guard let row, row.isUploaded else { return try finish(operation, envelope.recipient, transaction) }
    // The envelope stays until the log says who has served the recipient: until then, its number is not free.
    try OutgoingMessages(session: session, transaction: transaction).setServed(operation, row, envelope.recipient)
    return .waits
  }

  private func finish(
    _ operation: OperationRow, _ recipient: UserID, _ transaction: ZDCReadWriteTransaction
  ) throws -> Outcome {
    do {
      try transaction.undoable { try complete(operation, recipient, transaction) }
      return .done
    } catch let error as DelegateError {
      // A signal's envelope stays: the server answers that it has the message, and the app is notified again.
      var later = operation
      later.attempts += 1
      later.notBeforeMs = session.now() + Backoff.pause(attempts: later.attempts, random: session.time.random())
      (later.state, later.reason) = (.pending, .backoff)
      try transaction.operations.update(later)
      return .refusedByApp(error)
    }
  }

  /// Removes the recipient's operation and notifies the app. A signal's node goes with its operation.
  private func complete(
    _ operation: OperationRow, _ recipient: UserID, _ transaction: ZDCReadWriteTransaction
  ) throws {
    try noteNumber(operation, recipient, transaction)
    try transaction.operations.delete(id: operation.id)
    guard let row = try operation.node.flatMap({ try transaction.nodes.node(id: $0) }) else { return }
    let node = try session.node(row, in: transaction)
    let user = transaction.user(id: recipient.text) ?? ZDCUser(uuid: recipient.text, isLocal: false)
    try session.tell(.didSendMessage, row.nodeID, in: transaction) {
      try $0.didSendMessage(node, toRecipient: user, transaction: transaction)
    }
    guard !row.isUploaded, try transaction.operations.operations(node: row.id).isEmpty else { return }
    try transaction.nodes.deleteSubtree(of: row.id)
  }

  /// Notes that the recipient has a message with the number of this one. If another device takes the message over before,
  /// the next message gets the number.
  private func noteNumber(
    _ operation: OperationRow, _ recipient: UserID, _ transaction: ZDCReadWriteTransaction
  ) throws {
    guard !operation.isTakenOver, let seq = try transaction.messages.seq(of: operation.id) else { return }
    try transaction.messages.setSent(seq, to: recipient, localUser: session.localUser, tree: session.appTreeID)
  }

  private func refuse(
    _ operation: OperationRow, _ envelope: StoredEnvelope, _ result: DeliveryResult,
    _ transaction: ZDCReadWriteTransaction
  ) throws {
    try transaction.messages.removeEnvelope(of: operation.id)
    if operation.node != nil { try forgetHeads(of: envelope, transaction) }
    try pause(operation, detail: result.rawValue, transaction)
  }

  /// Forgets which heads a message named that the recipient does not get. The next message has its number.
  private func forgetHeads(of envelope: StoredEnvelope, _ transaction: ZDCReadWriteTransaction) throws {
    try NamedHeadStore(transaction).remove(
      namedTo: envelope.recipient, messageSeq: envelope.seq, localUser: session.localUser, tree: session.appTreeID)
  }

  private func pause(_ operation: OperationRow, detail: String) async throws {
    try await session.database.asyncReadWrite { transaction in
      guard let row = try transaction.operations.operation(id: operation.id), row.state == .pending else { return }
      try pause(row, detail: detail, transaction)
    }
  }

  private func pause(_ operation: OperationRow, detail: String, _ transaction: ZDCReadWriteTransaction) throws {
    var row = operation
    row.attempts += 1
    (row.state, row.reason, row.reasonDetail) = (.pending, .serverSaid, detail)
    row.notBeforeMs = session.now() + Backoff.pause(attempts: row.attempts, random: session.time.random())
    try transaction.operations.update(row)
  }
}

extension MessageSender.Letter {
  fileprivate func fields(_ session: SyncSession, device: UInt64, seq: UInt64) -> MessageBody.Fields {
    MessageBody.Fields(
      id: id(from: session.user), sender: session.user, senderGen: session.keys.signGen,
      device: device, recipient: recipient,
      inbox: .derive(owner: recipient, trunk: .inbox, appTreeID: session.appTreeID), recipientEncGen: key.encGen,
      seq: seq, timeMs: session.now(), kind: kind, payload: payload)
  }
}

extension MessageSender.Letter {
  private func id(from user: UserID) -> MessageID {
    if let profileVersion { return MessageID(profileVersion: profileVersion, from: user, to: recipient) }
    if kind == .burn, let burned = MessageID(payload) { return MessageID(burning: burned, from: user, to: recipient) }
    return MessageID(operation.nodeID.bytes) ?? .zero
  }
}

extension DeliveryResult {
  /// Whether sending the profile, or the burn, again would change nothing.
  fileprivate var isFinal: Bool {
    switch self {
    case .delivered, .exists, .blocked, .accountClosed, .notFound: true
    case .mailboxFull, .recipientKeyStale, .attachmentMissing: false
    }
  }
}
