#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The transaction whose block the calling thread is running.
///
/// Some calls without a transaction parameter may also be made inside a block (`nodeData(_:)` in
/// `data(for:at:transaction:)`). They join its transaction, because opening another one there would trap. The value
/// belongs to the thread, not the task: a task started inside the block must not inherit it.
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

  /// Returns the transaction if it belongs to that database.
  package static func ofDatabase(_ context: DatabaseContext) -> ZDCReadTransaction? {
    // Not dangling: the pointer is cleared before the block that keeps the transaction alive returns.
    guard let pointer = pthread_getspecific(key) else { return nil }
    let transaction = Unmanaged<ZDCReadTransaction>.fromOpaque(pointer).takeUnretainedValue()
    return transaction.context === context ? transaction : nil
  }
}

extension ZDCDatabaseConnection {
  /// Reads in the caller's transaction if there is one, otherwise in a new one.
  func joinedRead<T>(_ body: (ZDCReadTransaction) throws -> T) throws -> T {
    if let transaction = CurrentTransaction.ofDatabase(context) { return try body(transaction) }
    return try read(body)
  }

  /// Writes in the caller's write transaction if there is one, otherwise in a new one. A new one is also used inside a
  /// block that only reads.
  package func joinedWrite<T>(_ body: (ZDCReadWriteTransaction) throws -> T) throws -> T {
    if let transaction = CurrentTransaction.ofDatabase(context) as? ZDCReadWriteTransaction {
      return try body(transaction)
    }
    return try write(body)
  }
}
