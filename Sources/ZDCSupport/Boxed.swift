/// An optional value that is stored apart from the struct that has it, because few have one and the struct is copied often.
@propertyWrapper
package struct Boxed<Value: Sendable>: Sendable {
  @usableFromInline var box: Box?

  @usableFromInline final class Box: Sendable {
    @usableFromInline let value: Value

    @inlinable init(_ value: Value) { self.value = value }
  }

  @inlinable package init(wrappedValue: Value?) { box = wrappedValue.map { Box($0) } }

  @inlinable package var wrappedValue: Value? {
    get { box?.value }
    set { box = newValue.map { Box($0) } }
  }
}
