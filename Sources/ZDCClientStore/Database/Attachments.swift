internal import ZDCSupport

/// One value of each type, made when it is first asked for.
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
