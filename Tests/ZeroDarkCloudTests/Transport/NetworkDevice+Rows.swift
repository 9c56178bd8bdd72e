import ZDCProtocol

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZDCClientStore
@testable import ZeroDarkCloud

// NB: In a separate file, because the server module has row types with the same names.
extension NetworkDevice {
  func zones(of user: ZDCLocalUser) async throws -> [ZoneRow] {
    let userID = try ZDCLocalUserManager.userID(user.uuid)
    return try await connection.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(userID) else { return [] }
      return try transaction.zones.zones(localUser: row.id)
    }
  }

  func api(_ user: ZDCLocalUser) async throws -> ServerAPI {
    try await users.serverAPI(for: ZDCLocalUserManager.userID(user.uuid))
  }

  func storedUserIDs() async throws -> [UserID] {
    try await connection.asyncRead { try $0.localUsers.all().map(\.userID) }
  }
}
