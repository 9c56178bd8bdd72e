internal import ZDCProtocol
internal import ZeroDarkCloud

/// Server responses that failed verification during a command. None of their data is in the local tree.
struct RefusedAnswers: Sendable {
  /// `{"code","times"}`
  struct Kind: Sendable, Hashable, Encodable {
    var code: String
    var times: Int
  }

  private(set) var kinds: [Kind] = []

  /// - Parameters:
  ///   - before: The events known when the command began.
  ///   - after: The events known now.
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

  /// Prints them to standard error.
  func warn(_ output: Output) {
    for kind in kinds where !output.isJSON {
      output.warning(
        "data from the server failed verification: \(kind.code)\(kind.times > 1 ? ", \(kind.times) times" : ""); "
          + "it was skipped; see zdc status")
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
  /// Runs `body`. If it does not find a node in a tree that could not be read completely, reports the incomplete tree.
  func requiringTree<Result: Sendable>(
    _ user: String, isIncomplete: Bool = false, _ body: () async throws -> Result
  ) async throws -> Result {
    do { return try await body() } catch let error as CommandError
      where error.code == "nodeNotFound" || error.code == "missingParent"
    {
      guard let reason = try await unreadReason(user, isIncomplete: isIncomplete) else { throw error }
      throw CommandError(
        .security, "incompleteTree", "\(error.message); part of the tree could not be read: \(reason)",
        hint: "see zdc status and zdc repair")
    }
  }

  /// Returns the reason why home is missing from the local tree or incomplete; nil if it is neither.
  ///
  /// - Parameter isIncomplete: Whether this command left out a part of it.
  func unreadReason(_ user: String, isIncomplete: Bool = false) async throws -> String? {
    if let frozen = try await sync.frozenZones(localUserID: user).first { return frozen.error.rawValue }
    let isUnread = try await reader.read { transaction in
      try self.cloud(transaction, user).node(at: ZDCTreesystemPath(pathComponents: [])) == nil
    }
    guard isUnread || isIncomplete else { return nil }
    return try await sync.securityEvents(localUserID: user, limit: 1).first?.error.code.rawValue
  }
}
