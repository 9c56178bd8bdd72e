internal import Foundation
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// `zdc send` and `zdc inbox …`
package enum MessageCommands {
  /// `{"durableMs"?,"id","queuedMs","recipients"}`
  struct Sent: Encodable, Sendable {
    var id: String
    var recipients: [String]
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// `{"date"?,"id","isRead","senderID","size"}`
  struct Message: Encodable, Sendable {
    var id: String
    var senderID: String
    var isRead: Bool
    var size: UInt64
    var date: String?

    init(_ node: ZDCNode) {
      (id, senderID, isRead) = (node.cloudID, node.senderID ?? "", node.isRead ?? true)
      size = node.cloudDataInfo?.dataSize ?? 0
      date = node.lastModified.map { ISO8601DateFormatter().string(from: $0) }
    }
  }

  /// `{"date","id","isKeyCompromised","senderID","size"}`
  struct Request: Encodable, Sendable {
    var id: String
    var senderID: String
    var size: Int
    var date: String
    var isKeyCompromised: Bool

    init(_ request: ZDCMessageRequest) {
      (id, senderID, size) = (request.id, request.senderID, request.byteCount)
      isKeyCompromised = request.isKeyCompromised
      date = ISO8601DateFormatter().string(from: request.date)
    }
  }

  private struct Sender: Encodable {
    var senderID: String
  }

  // MARK: Sending

  /// - Parameter text: nil reads standard input.
  package static func send(
    _ options: ProfileOptions, recipients: [String], text: String?, queuesOnly: Bool
  ) async throws {
    let bytes = try text.map { Data($0.utf8) } ?? Data(Terminal.readInput())
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    var users: [ZDCUser] = []
    for typed in recipients {
      users.append(try await queuesOnly ? knownUser(typed, engine) : fetchUser(typed, engine))
    }
    let node = try await queue(bytes, to: users, engine)
    var report = Sent(id: node.cloudID, recipients: users.map(\.uuid), queuedMs: WallClock.milliseconds)
    if !queuesOnly {
      let progress = ProgressDisplay(ProgressLine(verb: "send", itemsTotal: 1), isEnabled: false)
      try await engine.settle(NodeSet([node.uuid]), progress: progress)
      report.durableMs = WallClock.milliseconds
    }
    try options.output.object(report)
    options.output.note(
      queuesOnly ? "queued: zdc sync sends it" : "sent to \(Amounts.count(users.count, "user"))")
    try await opened.close()
  }

  private static func fetchUser(_ typed: String, _ engine: Engine) async throws -> ZDCUser {
    let (opened, own) = (engine.opened, engine.user)
    return try await opened.people.fetchUser(id: try await opened.userID(typed: typed, for: own), for: own)
  }

  /// Returns a user whom this device has met, without asking the server. It is asked about others, and about a handle that
  /// several of the users claim.
  private static func knownUser(_ typed: String, _ engine: Engine) async throws -> ZDCUser {
    let own = try await engine.opened.reader.read { [own = engine.user] in $0.user(id: own) }
    let known = try await engine.opened.people.allUsers() + [own].compactMap(\.self)
    let matches = known.filter { $0.uuid == typed || "@\($0.handle ?? "")" == typed.lowercased() }
    if let user = matches.first, matches.count == 1 { return user }
    do {
      return try await fetchUser(typed, engine)
    } catch let error as TransportError {
      throw CommandError(
        .unavailable, "userUnknown", "\(ShownName.text(typed)): this device has not met the user yet, and \(error)",
        hint: "run zdc user show \(ShownName.text(typed)) once while the server can be reached, then queue the message")
    }
  }

  private static func queue(_ bytes: Data, to users: [ZDCUser], _ engine: Engine) async throws -> ZDCNode {
    try await engine.opened.connection.write { [opened = engine.opened, own = engine.user, users] transaction in
      guard let cloud = opened.zdc.cloudTransaction(transaction, forLocalUserID: own) else {
        throw ZDCError(.localUserNotFound)
      }
      let node = try cloud.sendMessage(toRecipients: users)
      transaction.setObject(
        MessageText(bytes: bytes), forKey: node.uuid, inCollection: MessageText.collection)
      return node
    }
  }

  // MARK: The inbox

  package static func list(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    for message in try await messages(engine).map(Message.init) {
      try options.output.object(message)
      let state = message.isRead ? "" : "  unread"
      options.output.line("\(message.id)  \(message.senderID)  \(message.size)  \(message.date ?? "")\(state)")
    }
    try await opened.close()
  }

  private static func messages(
    _ engine: Engine, in trunk: ZDCTreesystemTrunk = .inbox
  ) async throws -> [ZDCNode] {
    try await engine.opened.reader.read { transaction in
      let cloud = try engine.opened.cloud(transaction, engine.user).cloud
      guard let root = cloud.trunkNode(trunk) else { return [] }
      return try cloud.children(ofNodeID: root.uuid)
        .sorted { ($0.lastModified ?? .distantPast, $0.cloudID) < ($1.lastModified ?? .distantPast, $1.cloudID) }
    }
  }

  /// Writes the content of a message to standard output.
  package static func show(_ options: ProfileOptions, id: String) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    let node = try message(id, among: try await messages(engine), hint: "list the messages with zdc inbox")
    guard let downloads = opened.zdc.downloadManager else { throw ZDCError(.localUserNotFound) }
    try await GetToOutput(opened: opened).write(node, downloads)
    if node.isRead == false { try await change(node, engine) { try $0.markAsRead($1) } }
    try await opened.close()
  }

  private static func message(_ id: String, among all: [ZDCNode], hint: String) throws -> ZDCNode {
    // An unset shell variable would otherwise name the only message.
    guard id.count >= 4 else {
      throw CommandError(.usage, "invalidID", "an id has at least four characters", hint: hint)
    }
    let found = all.filter { $0.cloudID.hasPrefix(id) }
    guard let node = found.first, found.count == 1 else {
      throw CommandError(
        .noInput, "messageNotFound",
        "\(ShownName.text(id)): \(found.isEmpty ? "no such message" : "more than one message begins with this id")",
        hint: hint)
    }
    return node
  }

  /// Changes a message and sends the change.
  private static func change(
    _ node: ZDCNode, _ engine: Engine, _ body: @escaping @Sendable (ZDCCloudTransaction, ZDCNode) throws -> Void
  ) async throws {
    try await engine.opened.connection.write { [opened = engine.opened, own = engine.user] transaction in
      guard let cloud = opened.zdc.cloudTransaction(transaction, forLocalUserID: own) else {
        throw ZDCError(.localUserNotFound)
      }
      try body(cloud, node)
    }
    let progress = ProgressDisplay(ProgressLine(verb: "send", itemsTotal: 1), isEnabled: false)
    try await engine.settle(NodeSet([node.uuid]), progress: progress)
  }

  private struct Burned: Encodable {
    var id: String
  }

  /// Deletes a sent message, here and at its recipients.
  package static func burn(_ options: ProfileOptions, id: String) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    let node = try message(
      id, among: try await messages(engine, in: .outbox), hint: "zdc send --json prints the id of a sent message")
    try await change(node, engine) { try $0.burn($1) }
    try options.output.object(Burned(id: node.cloudID))
    options.output.note("deleted; its recipients' devices are asked to delete it")
    try await opened.close()
  }

  // MARK: Requests

  package static func requests(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    for request in try await opened.sync.messageRequests(forLocalUserID: user).map(Request.init) {
      try options.output.object(request)
      let mark = request.isKeyCompromised ? "  compromised key" : ""
      options.output.line("\(request.senderID)  \(request.size)  \(request.date)\(mark)")
    }
    try await opened.close()
  }

  package static func accept(_ options: ProfileOptions, sender: String) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let sender = try await opened.userID(typed: sender, for: user)
    try await opened.sync.acceptMessages(fromUserID: sender, forLocalUserID: user)
    try options.output.object(Sender(senderID: sender))
    options.output.note("accepted messages from \(sender)")
    try await opened.close()
  }

  package static func decline(_ options: ProfileOptions, sender: String, isBlocking: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let sender = try await opened.userID(typed: sender, for: user)
    try await opened.sync.declineMessages(fromUserID: sender, isBlocking: isBlocking, forLocalUserID: user)
    try options.output.object(Sender(senderID: sender))
    options.output.note(
      "deleted the pending messages from \(sender)\(isBlocking ? "; later ones are refused" : "")")
    try await opened.close()
  }
}
