internal import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCTransfers

// Requests that the system sends while the app is suspended.

extension ZDCSyncManager {
  /// Hands over the commit requests whose outcome is unknown. Each row stays: the next attempt of this process, or of a
  /// later one, sends the same bytes and learns the outcome.
  package func handOverRequests() async throws {
    let requests = try await database.rwDatabaseConnection.asyncRead { transaction in
      let users = Dictionary(
        try transaction.localUsers.all().map { ($0.id, $0.userID) }, uniquingKeysWith: { $1 })
      return try InFlightStore(transaction: transaction).all().compactMap { request in
        users[request.localUser].map { (request.zone, $0, request.commitHash) }
      }
    }
    for (zone, user, commit) in requests {
      guard try await handOver(commit, of: zone, user) else { return }
    }
  }

  /// - Returns: False if the system can take no more.
  private func handOver(_ commit: CommitHash, of zone: Int64, _ user: UserID) async throws -> Bool {
    handOver.announce(commit)
    // A writing transaction comes before or after the one in which the pusher drops a request that never left: either
    // the row is gone here, or the pusher sees the announcement and keeps it.
    let body = try await database.rwDatabaseConnection.asyncReadWrite { transaction -> [UInt8]? in
      let request = try InFlightStore(transaction: transaction).request(zone: zone)
      return request?.commitHash == commit ? request?.body : nil
    }
    guard let body else { return true }
    let api = try await users.serverAPI(for: user)
    return try await handOver.upload(.commit(commit), body) { try await api.systemCommit(commit, file: $0) }
  }

  /// Pushes for all local users, because the system's transfers may have completed uploads. Errors are in ``statusUpdates``.
  package func syncAfterHandOver() async {
    do {
      for user in try await users.allLocalUserIDs() {
        do { try await syncUntilIdle(localUserID: user) } catch { hub.post(.error(localUserID: user, error)) }
      }
    } catch { hub.post(.error(localUserID: "", error)) }
  }
}
