internal import ZeroDarkCloud

extension OpenProfile {
  /// Runs a change of the tree. A dry run rolls the change back and returns the same result.
  func change<Result: Sendable>(
    isDryRun: Bool, _ body: @escaping @Sendable (ZDCReadWriteTransaction) throws -> Result
  ) async throws -> Result {
    guard isDryRun else { return try await connection.write(body) }
    do {
      return try await connection.write { transaction in throw RolledBack(result: try body(transaction)) }
    } catch let rolledBack as RolledBack<Result> {
      return rolledBack.result
    }
  }
}

private struct RolledBack<Result: Sendable>: Error {
  var result: Result
}
