/// Writes a canonical object: fixed field order, big-endian integers, lengths before variable fields.
public struct ByteWriter: Sendable {
  public private(set) var bytes: [UInt8]

  public init(capacity: Int = 0) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  /// Begins a stored object: its magic, version 1, suite 1.
  public init(magic: StaticString, capacity: Int = 0) {
    self.init(capacity: capacity)
    magic.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(1)
    bytes.append(1)
  }

  public mutating func append(_ value: UInt8) { bytes.append(value) }
  public mutating func append(_ value: UInt16) { appendInteger(value) }
  public mutating func append(_ value: UInt32) { appendInteger(value) }
  public mutating func append(_ value: UInt64) { appendInteger(value) }
  public mutating func append(_ value: Bool) { bytes.append(value ? 1 : 0) }

  private mutating func appendInteger(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  public mutating func append<Role>(_ value: Bytes16<Role>) {
    append(value.high)
    append(value.low)
  }

  public mutating func append<Role>(_ value: Bytes32<Role>) {
    append(value.w0)
    append(value.w1)
    append(value.w2)
    append(value.w3)
  }

  public mutating func append(contentsOf other: some Collection<UInt8>) {
    bytes.append(contentsOf: other)
  }

  /// Appends `v16`. The caller keeps the field within its limit; a longer field traps.
  public mutating func append16(_ field: some Collection<UInt8>) {
    append(UInt16(field.count))
    bytes.append(contentsOf: field)
  }

  /// Appends `v32`.
  public mutating func append32(_ field: some Collection<UInt8>) {
    append(UInt32(field.count))
    bytes.append(contentsOf: field)
  }
}
