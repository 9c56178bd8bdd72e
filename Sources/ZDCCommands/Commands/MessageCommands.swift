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

  /// `{"date"?,"id","senderID","size"}`
  struct Message: Encodable, Sendable {
    var id: String
    var senderID: String
    var size: UInt64
    var date: String?

    init(_ node: ZDCNode) {
      (id, senderID) = (node.cloudID, node.senderID ?? "")
      size = node.cloudDataInfo?.dataSize ?? 0
      date = node.lastModified.map { ISO8601DateFormatter().string(from: $0) }
    }
  }

  /// `{"date","id","senderID","size"}`
  struct Request: Encodable, Sendable {
    var id: String
    var senderID: String
    var size: Int
    var date: String

    init(_ request: ZDCMessageRequest) {
      (id, senderID, size) = (request.id, request.senderID, request.byteCount)
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
    let bytes = try text.map { Data($0.utf8) } ?? FileHandle.standardInput.readToEnd() ?? Data()
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    var users: [ZDCUser] = []
    for id in recipients { users.append(try await opened.people.fetchUser(id: id, for: engine.user)) }
    let node = try await queue(bytes, to: users, engine)
    var report = Sent(id: node.cloudID, recipients: recipients, queuedMs: WallClock.milliseconds)
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
      options.output.line("\(message.id)  \(message.senderID)  \(message.size)  \(message.date ?? "")")
    }
    try await opened.close()
  }

  private static func messages(_ engine: Engine) async throws -> [ZDCNode] {
    try await engine.opened.reader.read { transaction in
      let cloud = try engine.opened.cloud(transaction, engine.user).cloud
      guard let inbox = cloud.trunkNode(.inbox) else { return [] }
      return try cloud.children(ofNodeID: inbox.uuid)
        .sorted { ($0.lastModified ?? .distantPast, $0.cloudID) < ($1.lastModified ?? .distantPast, $1.cloudID) }
    }
  }

  /// Writes the content of a message to standard output.
  package static func show(_ options: ProfileOptions, id: String) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    let found = try await messages(engine).filter { $0.cloudID.hasPrefix(id) }
    guard let node = found.first, found.count == 1, let downloads = opened.zdc.downloadManager else {
      throw CommandError(
        .noInput, "messageNotFound",
        "\(ShownName.text(id)): \(found.isEmpty ? "no such message" : "more than one message begins with this id")",
        hint: "list the messages with zdc inbox")
    }
    try await GetToOutput(opened: opened).write(node, downloads)
    try await opened.close()
  }

  // MARK: Requests

  package static func requests(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    for request in try await opened.sync.messageRequests(forLocalUserID: user).map(Request.init) {
      try options.output.object(request)
      options.output.line("\(request.senderID)  \(request.size)  \(request.date)")
    }
    try await opened.close()
  }

  package static func accept(_ options: ProfileOptions, sender: String) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    try await opened.sync.acceptMessages(fromUserID: sender, forLocalUserID: user)
    try options.output.object(Sender(senderID: sender))
    options.output.note("accepted messages from \(sender)")
    try await opened.close()
  }

  package static func decline(_ options: ProfileOptions, sender: String, isBlocking: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    try await opened.sync.declineMessages(fromUserID: sender, isBlocking: isBlocking, forLocalUserID: user)
    try options.output.object(Sender(senderID: sender))
    options.output.note(
      "deleted the pending messages from \(sender)\(isBlocking ? "; later ones are refused" : "")")
    try await opened.close()
  }
}
