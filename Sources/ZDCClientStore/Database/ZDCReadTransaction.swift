public import GRDB

/// A view of the database, frozen when the block was entered.
///
/// Valid inside the block that it was handed to, and on that block's queue. Any use afterwards traps. It cannot be sent
/// to another task,
/// and nothing can be awaited inside the block: what is slow happens outside.
///
/// Calls without `try` do not throw. If the database fails inside one, the transaction is *poisoned*: the block runs to
/// its end, nothing it
/// did counts, and the first error is thrown to whoever called `read` or `write`.
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

  /// SQLite itself, for the app's own tables, in this transaction. Tables that begin with `zdc_` are the framework's.
  public final var database: Database {
    guard let openDatabase else { preconditionFailure("a transaction was used after its block had returned") }
    return openDatabase
  }

  /// One instance for each transaction and type.
  @inlinable package final func cached<T: AnyObject>(_ make: () throws -> T) rethrows -> T {
    let id = ObjectIdentifier(T.self)
    if let known = cache[id] as? T { return known }
    let made = try make()
    cache[id] = made
    return made
  }

  /// Makes the whole transaction fail once its block returns. Only the first error is kept.
  @usableFromInline package final func poison(_ error: any Error) {
    guard poisonError == nil else { return }
    poisonError = error
    context.logPoison(error)
  }

  /// The error that a call which does not throw has left; the transaction is good again.
  package final func takePoison() -> (any Error)? {
    defer { poisonError = nil }
    return poisonError
  }

  /// Runs a call that does not throw: an error poisons the transaction, and the call gives nil.
  @inlinable package final func poisoning<T>(_ body: () throws -> T) -> T? {
    do { return try body() } catch {
      poison(error)
      return nil
    }
  }

  /// Runs the caller's block; afterwards the transaction is of no use.
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

/// The name that the seed documents use.
public typealias YapDatabaseReadTransaction = ZDCReadTransaction
/// The name that the seed documents use.
public typealias YapDatabaseReadWriteTransaction = ZDCReadWriteTransaction
