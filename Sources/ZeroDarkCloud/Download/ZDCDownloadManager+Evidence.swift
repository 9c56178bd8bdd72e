internal import ZDCProtocol

// What a server sent in place of a content is kept, not only thrown (PROTOCOL 3.13): whoever asked may be gone, and the
// next try may succeed.

extension ZDCDownloadManager {
  /// Runs a transfer. A security error gets the ids of what was fetched, is kept, and is thrown on.
  func keepingEvidence<Value>(
    of target: ContentTarget, _ body: () async throws -> Value
  ) async throws -> Value {
    do {
      return try await body()
    } catch let error as ZDCSecurityError {
      let located = error.with(zone: target.zone, node: target.node)
      // "Not found" proves nothing: the node may have been deleted since the last pull.
      if located.code != .objectMissing { await keep(located, target) }
      throw located
    }
  }

  /// Once, however often it is met in a row.
  private func keep(_ error: ZDCSecurityError, _ target: ContentTarget) async {
    do {
      try await database.asyncReadWrite { transaction in
        guard let user = try transaction.localUsers.user(target.user)?.id else { return }
        let last = try transaction.lastSecurityEvent(localUser: user, node: target.node)
        guard last?.code != error.code.rawValue else { return }
        let zone = try transaction.zones.zones(localUser: user).first { $0.zone == target.zone }
        try transaction.record(error, localUser: user, zone: zone?.id, atMs: transaction.context.clock())
      }
    } catch {
      // The caller is to hear of the lie, not of this.
      database.context.logFailure(error)
    }
  }
}
