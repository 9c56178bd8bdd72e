package import Logging
package import ZDCCrypto

/// The state that all transactions of an open database share.
package final class DatabaseContext: Sendable {
  /// The app's object that is linked to a node.
  typealias OpenedLink = (collection: String, key: String)

  /// Seals values under the database key.
  package let sealer: ValueSealer
  /// The sealer of zdc_object, kept because deriving it costs more than sealing a small value.
  let objectSealer: TableSealer
  package let registry: CollectionRegistry
  /// Milliseconds since 1970.
  package let clock: @Sendable () -> UInt64
  package let changes: ChangeSignals
  package let logger: Logger
  package let zones = ZoneMemory()
  let decoded: DecodedObjects
  /// The opened links of nodes, by the numbers of their rows.
  let openedLinks = RowCache<Int64, OpenedLink>(limit: 10_000)
  /// In-memory state that other parts of the framework keep for as long as the database is open.
  package let attachments = Attachments()
  /// Called inside the transaction that removed an app object.
  package let objectRemoved: [ObjectRemovedObserver]
  package let observers: DatabaseObservers
  package let journalLimits: ZDCJournalLimits

  package init(
    sealer: ValueSealer, registry: CollectionRegistry = CollectionRegistry(), clock: @escaping @Sendable () -> UInt64,
    logger: Logger, changes: ChangeSignals = ChangeSignals(),
    objectRemoved: [ObjectRemovedObserver],
    observers: DatabaseObservers = DatabaseObservers(),
    journalLimits: ZDCJournalLimits = ZDCJournalLimits()
  ) {
    self.observers = observers
    self.journalLimits = journalLimits
    self.sealer = sealer
    objectSealer = sealer.table("zdc_object")
    self.registry = registry
    decoded = DecodedObjects(registry)
    self.clock = clock
    self.changes = changes
    self.logger = logger
    self.objectRemoved = objectRemoved
  }

  func logPoison(_ error: any Error) {
    logger.error("transaction poisoned", metadata: ["error": "\(loggable(error))"])
  }

  /// Logs an error that no caller receives. Cancellation is not an error.
  package func logFailure(_ error: any Error) {
    guard !(error is CancellationError) else { return }
    logger.error("database access failed", metadata: ["error": "\(loggable(error))"])
  }
}

/// `rowKey` is the key of the removed row in zdc_object, as stored in zdc_link.
package typealias ObjectRemovedObserver =
  @Sendable (_ transaction: ZDCReadWriteTransaction, _ rowKey: [UInt8]) throws -> Void

/// Hooks that other parts of the framework run inside the app's transactions.
package struct DatabaseObservers: Sendable {
  /// Called when the app inserts a node that it created.
  package var nodeInserted: @Sendable (_ transaction: ZDCReadWriteTransaction, _ nodeID: String) throws -> Void
  /// Called when the last upload of a node leaves the queue unsent. `node` is the node's row.
  package var uploadsDropped: @Sendable (_ transaction: ZDCReadWriteTransaction, _ node: Int64) throws -> Void

  package init(
    nodeInserted: @escaping @Sendable (ZDCReadWriteTransaction, String) throws -> Void = { _, _ in },
    uploadsDropped: @escaping @Sendable (ZDCReadWriteTransaction, Int64) throws -> Void = { _, _ in }
  ) {
    (self.nodeInserted, self.uploadsDropped) = (nodeInserted, uploadsDropped)
  }
}
