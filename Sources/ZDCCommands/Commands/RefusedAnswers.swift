internal import ZDCProtocol
internal import ZeroDarkCloud

/// Answers of the server that failed verification during a command. The local tree has nothing of them.
struct RefusedAnswers: Sendable {
  /// `{"code","times"}`
  struct Kind: Sendable, Hashable, Encodable {
    var code: String
    var times: Int
  }

  private(set) var kinds: [Kind] = []

  /// - Parameters:
  ///   - before: What was known when the command began.
  ///   - after: What is known now.
  init(from before: [ZDCSecurityEvent], to after: [ZDCSecurityEvent]) {
    let known = Self.times(before)
    kinds = Self.times(after).compactMap { code, times in
      let new = times - known[code, default: 0]
      return new > 0 ? Kind(code: code, times: new) : nil
    }
    .sorted { $0.code < $1.code }
  }

  private static func times(_ events: [ZDCSecurityEvent]) -> [String: Int] {
    events.reduce(into: [:]) { $0[$1.error.code.rawValue, default: 0] += $1.times }
  }

  var isEmpty: Bool { kinds.isEmpty }

  /// Names them on standard error.
  func warn(_ output: Output) {
    for kind in kinds where !output.isJSON {
      output.warning(
        "what the server sent does not verify: \(kind.code)\(kind.times > 1 ? ", \(kind.times) times" : ""); "
          + "it is left out here: see zdc status")
    }
  }
}

extension Engine {
  func securityEvents() async throws -> [ZDCSecurityEvent] {
    try await opened.sync.securityEvents(localUserID: user)
  }

  func refusedAnswers(since before: [ZDCSecurityEvent]) async throws -> RefusedAnswers {
    RefusedAnswers(from: before, to: try await securityEvents())
  }
}

extension OpenProfile {
  /// Runs `body`; a node that it does not find in a tree that could not be read is reported as that.
  func requiringTree<Result: Sendable>(
    _ user: String, isIncomplete: Bool = false, _ body: () async throws -> Result
  ) async throws -> Result {
    do { return try await body() } catch let error as CommandError
      where error.code == "nodeNotFound" || error.code == "missingParent"
    {
      guard let reason = try await unreadReason(user, isIncomplete: isIncomplete) else { throw error }
      throw CommandError(
        .security, "incompleteTree", "\(error.message), as far as the tree could be read: \(reason)",
        hint: "see zdc status and zdc repair")
    }
  }

  /// Why home is not in the local tree, or not up to date; nil if it is.
  ///
  /// - Parameter isIncomplete: Something of it was left out in this command.
  func unreadReason(_ user: String, isIncomplete: Bool = false) async throws -> String? {
    if let frozen = try await sync.frozenZones(localUserID: user).first { return frozen.error.rawValue }
    let isUnread = try await reader.read { transaction in
      try self.cloud(transaction, user).node(at: ZDCTreesystemPath(pathComponents: [])) == nil
    }
    guard isUnread || isIncomplete else { return nil }
    return try await sync.securityEvents(localUserID: user, limit: 1).first?.error.code.rawValue
  }
}
