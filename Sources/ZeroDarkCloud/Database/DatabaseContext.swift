package import Logging
package import ZDCCrypto

/// What every transaction of an opened database carries.
package final class DatabaseContext: Sendable {
  /// Seals values under the database's key.
  package let sealer: ValueSealer
  /// The sealer of zdc_object, made once: deriving costs more than sealing a small value.
  let objectSealer: TableSealer
  package let registry: CollectionRegistry
  /// Milliseconds since 1970.
  package let clock: @Sendable () -> UInt64
  package let changes: ChangeSignals
  package let logger: Logger
  /// What the engines of this process know and no table has.
  let engines = EngineStates()
  let zones = ZoneMemory()
  /// What the disk manager knows beside its table.
  let disk = DiskState()
  /// Called inside the transaction that removed an app object.
  let objectRemoved: [ObjectRemovedObserver]
  let journalLimits: ZDCJournalLimits

  init(
    sealer: ValueSealer, registry: CollectionRegistry = CollectionRegistry(), clock: @escaping @Sendable () -> UInt64,
    logger: Logger, changes: ChangeSignals = ChangeSignals(),
    objectRemoved: [ObjectRemovedObserver] = DatabaseObservers.objectRemoved,
    journalLimits: ZDCJournalLimits = ZDCJournalLimits()
  ) {
    self.journalLimits = journalLimits
    self.sealer = sealer
    objectSealer = sealer.table("zdc_object")
    self.registry = registry
    self.clock = clock
    self.changes = changes
    self.logger = logger
    self.objectRemoved = objectRemoved
  }

  func logPoison(_ error: any Error) {
    logger.error("transaction poisoned", metadata: ["error": "\(loggable(error))"])
  }

  /// For errors that no caller takes. A cancelled task is none.
  func logFailure(_ error: any Error) {
    guard !(error is CancellationError) else { return }
    logger.error("database access failed", metadata: ["error": "\(loggable(error))"])
  }
}

/// `rowKey` is the key of the removed row in zdc_object, as zdc_link has it.
typealias ObjectRemovedObserver = @Sendable (_ transaction: ZDCReadWriteTransaction, _ rowKey: [UInt8]) throws -> Void

/// The framework's own observers of its database: one list, read in one place.
enum DatabaseObservers {
  static let objectRemoved: [ObjectRemovedObserver] = [LinkedObjectRemoval.observe]
}
