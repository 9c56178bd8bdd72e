import Foundation
import ZeroDarkCloud

/// A user and their device.
struct Person: Sendable {
  var device: Device
  var user: String
  var words: [String]

  init(_ server: ServerProcess, _ folder: URL, _ transport: CountingTransport? = nil) async throws {
    device = try Device(server: server.url, folder: folder, transport: transport)
    (user, words) = try await device.createAccount()
  }

  /// Fetches, verifies and pins the other user's identity.
  @discardableResult
  func meet(_ other: String) async throws -> ZDCUser {
    guard let people = device.zdc.userManager else { throw BenchError("not unlocked") }
    return try await people.fetchUser(id: other, for: user)
  }

  func acceptMessages(of other: Person) async throws {
    try await device.zdc.syncManager?.acceptMessages(fromUserID: other.user, forLocalUserID: user)
  }

  /// Runs the work in one transaction of the user.
  @discardableResult
  func transaction<T: Sendable>(_ work: @escaping @Sendable (ZDCCloudTransaction) throws -> T) async throws -> T {
    guard let database = device.zdc.databaseManager?.rwDatabaseConnection else { throw BenchError("not unlocked") }
    let (zdc, user) = (device.zdc, user)
    return try await database.asyncReadWrite { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else {
        throw BenchError("no such user")
      }
      return try work(cloud)
    }
  }

  func syncUntilIdle() async throws {
    guard let sync = device.zdc.syncManager else { throw BenchError("not unlocked") }
    try await sync.syncUntilIdle(localUserID: user)
  }
}
