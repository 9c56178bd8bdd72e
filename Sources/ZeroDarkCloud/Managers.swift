internal import Foundation
internal import ZDCProtocol

/// What exists while the database is unlocked. Made in one place, so that each part is handed exactly what it needs.
struct Managers: Sendable {
  let database: ZDCDatabaseManager
  let localUsers: ZDCLocalUserManager
  let sync: ZDCSyncManager

  init(config: ZDCConfig, delegate: DelegateBox, database: ZDCDatabaseManager) throws {
    self.database = database
    localUsers = ZDCLocalUserManager(
      database: database.rwDatabaseConnection, transport: try config.makeTransport(),
      address: try ServerAddress(config.serverOrigin()), appTreeID: config.primaryTreeID, now: config.clock)
    sync = ZDCSyncManager(database: database, users: localUsers, config: config, delegate: delegate)
  }

  /// After the framework calls itself unlocked: engines begin here.
  func start() { sync.start() }

  /// Before the database closes: engines have ended when this returns.
  func stop() async { await sync.stop() }
}

extension ZeroDarkCloud {
  /// Connections and transactions; nil until the database is unlocked.
  public var databaseManager: ZDCDatabaseManager? { managers?.database }

  /// Accounts on this device; nil until the database is unlocked.
  public var localUserManager: ZDCLocalUserManager? { managers?.localUsers }

  /// Push and pull; nil until the database is unlocked.
  public var syncManager: ZDCSyncManager? { managers?.sync }
}

extension ZDCConfig {
  fileprivate func makeTransport() throws -> any ZDCTransport {
    if let transport { return transport }
    return try AsyncHTTPTransport(
      address: ServerAddress(serverOrigin()), caCertificates: caCertificates.map { [UInt8]($0) })
  }
}
