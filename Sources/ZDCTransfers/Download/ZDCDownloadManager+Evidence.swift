internal import ZDCClientStore
internal import ZDCProtocol

// Evidence of what a server sent in place of content is stored, not only thrown (PROTOCOL 3.13): the caller may be
// gone, and the next attempt may succeed.

extension ZDCDownloadManager {
  /// Runs a transfer. Adds the IDs of the target to a security error, stores it, and rethrows it.
  func recordingSecurityErrors<Value>(
    of target: ContentTarget, _ body: () async throws -> Value
  ) async throws -> Value {
    try await recordingSecurityErrors(target.user, target.zone, target.node, body)
  }

  /// The same for an answer with content of several nodes. An error in the whole answer is attributed to none of them.
  func recordingSecurityErrors<Value>(
    ofZoneOf target: ContentTarget, _ body: () async throws -> Value
  ) async throws -> Value {
    try await recordingSecurityErrors(target.user, target.zone, nil, body)
  }

  private func recordingSecurityErrors<Value>(
    _ user: UserID, _ zone: ZoneID, _ node: NodeID?, _ body: () async throws -> Value
  ) async throws -> Value {
    do {
      return try await body()
    } catch let error as ZDCSecurityError {
      let located = error.with(zone: zone, node: node)
      // "Not found" proves nothing: the node may have been deleted since the last pull.
      if located.code != .objectMissing { await keep(located, user, zone, node) }
      throw located
    }
  }

  /// Stores the error once, however often it occurs in a row.
  private func keep(_ error: ZDCSecurityError, _ user: UserID, _ zoneID: ZoneID, _ node: NodeID?) async {
    do {
      try await database.asyncReadWrite { transaction in
        guard let user = try transaction.localUsers.user(user)?.id else { return }
        let zone = try transaction.zones.zones(localUser: user).first { $0.zone == zoneID }?.id
        let last =
          if let node {
            try transaction.lastSecurityEvent(localUser: user, node: node)?.code
          } else { try zone.flatMap { try transaction.lastSecurityEvent(zone: $0)?.code.rawValue } }
        guard last != error.code.rawValue else { return }
        try transaction.record(error, localUser: user, zone: zone, atMs: transaction.context.clock())
      }
    } catch {
      // The caller must get the security error, not this one.
      database.context.logFailure(error)
    }
  }
}
