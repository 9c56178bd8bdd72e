#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The transaction whose block the calling thread is in.
///
/// Calls without a transaction parameter that an app may also make inside a block (seed 000: `nodeData(_:)` in
/// `data(for:at:transaction:)`) join it: opening another one there would trap. A thread's and not a task's value: a
/// task that is started inside the block must not get it.
package enum CurrentTransaction {
  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let status = pthread_key_create(&key, nil)
    precondition(status == 0, "no thread-specific values")
    return key
  }()

  package static func enter(_ transaction: ZDCReadTransaction) -> UnsafeMutableRawPointer? {
    let outer = pthread_getspecific(key)
    pthread_setspecific(key, Unmanaged.passUnretained(transaction).toOpaque())
    return outer
  }

  package static func leave(to outer: UnsafeMutableRawPointer?) {
    pthread_setspecific(key, outer)
  }

  /// The transaction, if it is one of that database.
  package static func ofDatabase(_ context: DatabaseContext) -> ZDCReadTransaction? {
    // Not dangling: it is taken away before the block that keeps the transaction alive returns.
    guard let pointer = pthread_getspecific(key) else { return nil }
    let transaction = Unmanaged<ZDCReadTransaction>.fromOpaque(pointer).takeUnretainedValue()
    return transaction.context === context ? transaction : nil
  }
}

extension ZDCDatabaseConnection {
  /// Reads in the transaction that the caller is in, or else in one of its own.
  func joinedRead<T>(_ body: (ZDCReadTransaction) throws -> T) throws -> T {
    if let transaction = CurrentTransaction.ofDatabase(context) { return try body(transaction) }
    return try read(body)
  }

  /// Writes in the transaction that the caller is in, or else in one of its own. Inside a block that only reads it is
  /// one of its own too.
  package func joinedWrite<T>(_ body: (ZDCReadWriteTransaction) throws -> T) throws -> T {
    if let transaction = CurrentTransaction.ofDatabase(context) as? ZDCReadWriteTransaction {
      return try body(transaction)
    }
    return try write(body)
  }
}
