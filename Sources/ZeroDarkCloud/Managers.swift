/// What exists while the database is unlocked. Made in one place, so that each part is handed exactly what it needs.
struct Managers: Sendable {
  let database: ZDCDatabaseManager

  init(config: ZDCConfig, delegate: DelegateBox, database: ZDCDatabaseManager) throws {
    self.database = database
  }

  /// After the framework calls itself unlocked: engines begin here.
  func start() {}

  /// Before the database closes: engines have ended when this returns.
  func stop() async {}
}

extension ZeroDarkCloud {
  /// Connections and transactions; nil until the database is unlocked.
  public var databaseManager: ZDCDatabaseManager? { managers?.database }
}
