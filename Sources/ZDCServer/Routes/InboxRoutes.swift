internal import Hummingbird
internal import ZDCProtocol

/// Messages: delivering them to other users, and the caller's own inbox.
enum InboxRoutes {
  static func deliver(_ call: Call) async throws -> Response {
    let user = try call.user
    let envelopes = try Inboxes.envelopes(try await call.bytes())
    guard envelopes.allSatisfy({ $0.recipient != user }) else {
      throw ServerError(.invalidRequest, "a message to yourself")
    }
    let core = call.core
    try core.takeMessages(envelopes.count, of: user)
    let (now, bounds) = (call.now, core.configuration.bounds.inboxes)
    let subjects = Set(envelopes.map { WriteSubject.zone(ZoneID(trunkOf: $0.inbox)) })
    let results = try await call.write(subjects) { tx in
      guard try tx.user(user)?.isClosed == false else { throw ServerError(.accountClosed, "the account is closed") }
      let results = try envelopes.map { try Inboxes.deliver($0, from: user, bounds: bounds, now: now, in: tx) }
      let reached = Set(zip(envelopes, results).filter { $1 == .delivered }.map(\.0.recipient))
      for recipient in reached {
        try core.coordination.announce(.message(MessageNotice(recipient: recipient)), in: tx)
      }
      return results
    }
    return try .json(DeliveryResponse(receivedMs: now, results: results))
  }

  static func list(_ call: Call) async throws -> Response {
    let (user, tree) = (try call.user, try call.id("treeID") as TreeID)
    let after = try call.number("after") ?? 0
    return try .json(try await call.read { try Inboxes.list(tree, of: user, after: after, in: $0) })
  }

  static func read(_ call: Call) async throws -> Response {
    let (user, tree) = (try call.user, try call.id("treeID") as TreeID)
    let names = try MessageName.all(try await call.bytes())
    return try .bundle(try await call.read { try Inboxes.read(names, tree, of: user, in: $0) }, for: call)
  }

  static func remove(_ call: Call) async throws -> Response {
    let (user, tree) = (try call.user, try call.id("treeID") as TreeID)
    let node = NodeID(message: try call.id("messageID"), from: try call.id("userID"))
    try await call.write([.zone(ZoneID(trunkOf: tree))]) { tx in
      try tx.removeEnvelopes(ofNodes: [node], in: try Inboxes.ownInbox(tree, of: user, in: tx))
    }
    return .noContent
  }

  static func setSender(_ call: Call) async throws -> Response {
    let state: SenderState =
      switch try await call.json(SenderRequest.self).state {
      case .accepted: .accepted
      case .blocked: .blocked
      }
    try await change(call, to: state)
    return .noContent
  }

  static func forgetSender(_ call: Call) async throws -> Response {
    try await change(call, to: [])
    return .noContent
  }

  /// Replaces the owner's decision about a sender.
  private static func change(_ call: Call, to decision: SenderState) async throws {
    let (user, tree, sender) = (try call.user, try call.id("treeID") as TreeID, try call.id("userID") as UserID)
    try call.core.takeWork(of: user)
    try await call.write([.zone(ZoneID(trunkOf: tree))]) { tx in
      let inbox = try Inboxes.ownInbox(tree, of: user, in: tx)
      guard try tx.user(sender) != nil else { throw ServerError(.notFound, "no such user") }
      let hasWritten = try tx.sender(sender, of: inbox).intersection(.hasWritten)
      try tx.setSender(sender, to: hasWritten.union(decision), of: inbox)
    }
  }
}
