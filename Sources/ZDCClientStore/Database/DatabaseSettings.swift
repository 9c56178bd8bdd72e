package import Foundation
package import Logging

/// The part of the framework's configuration that the database uses.
package struct DatabaseSettings: Sendable {
  package var file: URL
  /// Milliseconds since 1970.
  package var clock: @Sendable () -> UInt64
  package var logger: Logger
  package var journalLimits: ZDCJournalLimits
  /// The interval between checks for commits of other processes.
  package var changePollInterval: Duration
  package var observers: DatabaseObservers

  package init(
    file: URL, clock: @escaping @Sendable () -> UInt64, logger: Logger, journalLimits: ZDCJournalLimits,
    changePollInterval: Duration, observers: DatabaseObservers
  ) {
    (self.file, self.clock, self.logger) = (file, clock, logger)
    (self.journalLimits, self.changePollInterval) = (journalLimits, changePollInterval)
    self.observers = observers
  }
}
