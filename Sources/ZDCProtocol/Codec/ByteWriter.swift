/// Writes a canonical object: fixed field order, big-endian integers, lengths before variable fields.
package struct ByteWriter: Sendable {
  package private(set) var bytes: [UInt8]

  package init(capacity: Int = 0) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  /// Begins a stored object: its magic, version 1, suite 1.
  package init(magic: StaticString, capacity: Int = 0) {
    self.init(capacity: capacity)
    magic.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(1)
    bytes.append(1)
  }

  package mutating func append(_ value: UInt8) { bytes.append(value) }
  package mutating func append(_ value: UInt16) { appendInteger(value) }
  package mutating func append(_ value: UInt32) { appendInteger(value) }
  package mutating func append(_ value: UInt64) { appendInteger(value) }
  package mutating func append(_ value: Bool) { bytes.append(value ? 1 : 0) }

  private mutating func appendInteger(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  package mutating func append<Role>(_ value: Bytes16<Role>) {
    append(value.high)
    append(value.low)
  }

  package mutating func append<Role>(_ value: Bytes32<Role>) {
    append(value.w0)
    append(value.w1)
    append(value.w2)
    append(value.w3)
  }

  // The forms for arrays and slices are not generic, because a generic function of another module copies byte by byte.

  package mutating func append(contentsOf other: [UInt8]) { bytes.append(contentsOf: other) }
  package mutating func append(contentsOf other: some Collection<UInt8>) { bytes.append(contentsOf: other) }

  package mutating func append(zeros count: Int) { bytes.append(contentsOf: repeatElement(0, count: count)) }

  /// Appends `v16`. The caller keeps the field within its limit; a longer field traps.
  package mutating func append16(_ field: [UInt8]) {
    append(UInt16(field.count))
    bytes.append(contentsOf: field)
  }

  package mutating func append16(_ field: some Collection<UInt8>) { append16(Array(field)) }

  /// Appends `v32`.
  package mutating func append32(_ field: [UInt8]) {
    append(UInt32(field.count))
    bytes.append(contentsOf: field)
  }

  package mutating func append32(_ field: some Collection<UInt8>) { append32(Array(field)) }
}
