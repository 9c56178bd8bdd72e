public import GRDB

/// A view of the database as it was when the block began.
///
/// It is valid inside the block that receives it, on that block's queue; any later use traps. It cannot be sent to
/// another task, and the block cannot await. Slow work belongs outside.
///
/// Calls without `try` do not throw. If the database fails inside one, the transaction is *poisoned*: the block runs to
/// its end, none of its changes take effect, and the caller of `read` or `write` gets the first error.
///
/// ```swift
/// let task = try await connection.read { transaction in
///   try transaction.object(Task.self, forKey: taskID, inCollection: "tasks")  // return values, not the transaction
/// }
/// ```
public class ZDCReadTransaction {
  private var openDatabase: Database?
  package let context: DatabaseContext
  @usableFromInline package final var cache: [ObjectIdentifier: AnyObject] = [:]
  /// The first error of a call that does not throw.
  package private(set) var poisonError: (any Error)?

  package init(_ database: Database, context: DatabaseContext) {
    openDatabase = database
    self.context = context
  }

  /// The SQLite connection of this transaction, for the app's own tables. Tables that begin with `zdc_` belong to the
  /// framework.
  ///
  /// It is GRDB's, so everything that GRDB offers works in it. It is valid as long as the transaction.
  ///
  /// ```swift
  /// let count = try await connection.read { transaction in
  ///   try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM task") ?? 0
  /// }
  /// ```
  public final var database: Database {
    guard let openDatabase else { preconditionFailure("a transaction was used after its block had returned") }
    return openDatabase
  }

  /// Returns one instance for each transaction and type.
  @inlinable package final func cached<T: AnyObject>(_ make: () throws -> T) rethrows -> T {
    let id = ObjectIdentifier(T.self)
    if let known = cache[id] as? T { return known }
    let made = try make()
    cache[id] = made
    return made
  }

  /// Makes the whole transaction fail when its block returns. Only the first error is kept.
  @usableFromInline package final func poison(_ error: any Error) {
    guard poisonError == nil else { return }
    poisonError = error
    context.logPoison(error)
  }

  /// Returns the error that a non-throwing call left, and clears it.
  package final func takePoison() -> (any Error)? {
    defer { poisonError = nil }
    return poisonError
  }

  /// Runs a call that does not throw: an error poisons the transaction, and the call returns nil.
  @inlinable package final func poisoning<T>(_ body: () throws -> T) -> T? {
    do { return try body() } catch {
      poison(error)
      return nil
    }
  }

  /// Runs the caller's block. The transaction is unusable afterwards.
  package final func run<T>(_ body: () throws -> T) throws -> T {
    let outer = CurrentTransaction.enter(self)
    defer {
      CurrentTransaction.leave(to: outer)
      openDatabase = nil
      cache = [:]
    }
    let result: T
    do { result = try body() } catch { throw poisonError ?? error }
    if let poisonError { throw poisonError }
    return result
  }
}

@available(*, unavailable)
extension ZDCReadTransaction: Sendable {}

/// The original framework's name.
public typealias YapDatabaseReadTransaction = ZDCReadTransaction
/// The original framework's name.
public typealias YapDatabaseReadWriteTransaction = ZDCReadWriteTransaction
