internal import Foundation
package import ZDCAccounts
package import ZDCClientStore
internal import ZDCTransfers

extension ZDCConfig {
  var databaseSettings: DatabaseSettings {
    DatabaseSettings(
      file: databasePath, clock: clock, logger: logger, journalLimits: journalLimits,
      changePollInterval: changePollInterval,
      observers: DatabaseObservers(
        nodeInserted: { try $0.uninsertedFiles.attach(toNode: $1) },
        uploadsDropped: { try DiskWriter($0).uploadsFinished(node: $1) }))
  }
}

extension ZDCDatabaseManager {
  /// Opens or creates the database.
  ///
  /// - Throws: See ``ZeroDarkCloud/unlockOrCreateDatabase(_:)``.
  package convenience init(config: ZDCConfig, databaseConfig: ZDCDatabaseConfig) throws {
    try self.init(settings: config.databaseSettings, databaseConfig: databaseConfig)
  }
}

extension ZDCDatabaseKeyManager {
  convenience init(config: ZDCConfig) {
    self.init(
      databasePath: config.databasePath, keychainAccount: config.stablePath(home: NSHomeDirectory()))
  }
}
