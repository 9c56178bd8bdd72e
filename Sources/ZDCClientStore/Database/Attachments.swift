internal import ZDCSupport

/// Holds one value per type, created on first use.
package final class Attachments: Sendable {
  private let values = Locked<[ObjectIdentifier: any Sendable]>([:])

  package func value<Value: Sendable>(_ make: @Sendable () -> Value) -> Value {
    values.withLock { values in
      if let value = values[ObjectIdentifier(Value.self)] as? Value { return value }
      let value = make()
      values[ObjectIdentifier(Value.self)] = value
      return value
    }
  }
}
