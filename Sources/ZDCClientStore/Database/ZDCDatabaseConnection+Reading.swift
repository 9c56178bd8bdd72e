internal import GRDB

extension ZDCDatabaseConnection {
  /// Reads, blocking the caller, as in the original framework: for a block that neither returns nor throws.
  ///
  /// Nothing is handed back that an error could be mistaken for: it goes to the log and the status stream, as that of a
  /// write without completion. Return something from the block, or throw in it, and `read` throws too.
  @_disfavoredOverload
  public func read(_ body: (ZDCReadTransaction) -> Void) {
    finish(Result { try pool.read { try self.run(body, $0) } }, nil)
  }
}
