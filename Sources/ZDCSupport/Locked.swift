package import Synchronization

/// A value protected by a lock. Unlike `Mutex`, it is a reference, so it can be captured and copied.
package final class Locked<Value: Sendable>: Sendable {
  @usableFromInline let mutex: Mutex<Value>

  @inlinable package init(_ value: Value) {
    mutex = Mutex(value)
  }

  @inlinable @inline(__always)
  package func withLock<Result: Sendable>(_ body: (inout Value) throws -> Result) rethrows -> Result {
    try mutex.withLock { value in try body(&value) }
  }
}
