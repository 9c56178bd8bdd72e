import ZeroDarkCloud

/// The examples of the article "People and devices", as an app would have them.
final class PeopleAndDevicesArticle: Sendable {
  let session: ZDCSession
  let user: String

  init(session: ZDCSession, user: String) {
    self.session = session
    self.user = user
  }

  func lost(_ device: ZDCDevice) async throws -> [String] {
    try await session.localUserManager.revokeDevice(device.id, of: user)
    try await session.localUserManager.rotateKeys(for: user, areCompromised: true)
    try await session.syncManager.syncUntilIdle(localUserID: user)  // retires the old keys
    return try await session.localUserManager.changeAccessWords(for: user)
  }

  func syncAgain(words: () async -> [String]) async throws {
    do {
      try await session.syncManager.syncUntilIdle(localUserID: user)
    } catch let error as ZDCServerError where error.code == .unauthorized {
      try await session.localUserManager.renewLogin(of: user, words: words())
    } catch let error as ZDCSecurityError where error.code == .accessKeyChanged {
      try await session.localUserManager.renewLogin(of: user, words: words())
    }
  }

  func find(_ typed: String, choose: ([ZDCUser]) async -> ZDCUser?) async throws -> ZDCUser? {
    let matches = try await session.userManager.findUsers(handle: typed, for: user)
    guard let chosen = await choose(matches) else { return nil }
    return try await session.userManager.fetchUser(id: chosen.uuid, for: user)
  }

  func compare(with other: String) async throws -> String {
    let people = session.userManager
    let theirs = try await people.fetchUser(id: other, for: user)
    switch theirs.identity {
    case .seen, .changed: return try people.safetyNumber(of: user, and: other).description
    case .verified: return "Verified"
    case .closed: return "This user has closed the account."
    }
  }
}
