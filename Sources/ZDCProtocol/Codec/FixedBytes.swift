/// A 16-byte value with a role: the compiler keeps a node's ID apart from a blob's.
@frozen
public struct Bytes16<Role>: Hashable, Comparable, Sendable, BitwiseCopyable {
  @usableFromInline let high: UInt64
  @usableFromInline let low: UInt64

  @inlinable
  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The role's all-zero value, which the formats use for "none".
  @inlinable
  package static var zero: Self { Self(high: 0, low: 0) }

  /// Returns nil unless there are exactly 16 bytes.
  @inlinable
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 16 else { return nil }
    var iterator = bytes.makeIterator()
    high = bigEndianWord(&iterator)
    low = bigEndianWord(&iterator)
  }

  /// The first sixteen bytes of a longer value.
  @inlinable
  package init<Other>(prefixOf other: Bytes32<Other>) {
    high = other.w0
    low = other.w1
  }

  @inlinable
  package var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
      storeBigEndian(high, in: buffer, at: 0)
      storeBigEndian(low, in: buffer, at: 8)
      count = 16
    }
  }

  /// Sixteen bytes from the system's random number generator.
  @inlinable
  package static func random() -> Self {
    var generator = SystemRandomNumberGenerator()
    return Self(high: generator.next(), low: generator.next())
  }

  /// Compares two values as numbers, which is also the order of their bytes.
  @inlinable
  public static func < (a: Self, b: Self) -> Bool {
    (a.high, a.low) < (b.high, b.low)
  }

  /// Hashes the value.
  @inlinable
  public func hash(into hasher: inout Hasher) {
    hasher.combine(high)
    hasher.combine(low)
  }
}

/// A 32-byte value with a role.
@frozen
public struct Bytes32<Role>: Hashable, Comparable, Sendable, BitwiseCopyable {
  @usableFromInline let w0: UInt64
  @usableFromInline let w1: UInt64
  @usableFromInline let w2: UInt64
  @usableFromInline let w3: UInt64

  @inlinable
  package init(_ w0: UInt64, _ w1: UInt64, _ w2: UInt64, _ w3: UInt64) {
    self.w0 = w0
    self.w1 = w1
    self.w2 = w2
    self.w3 = w3
  }

  /// The role's all-zero value, which the formats use for "none".
  @inlinable
  package static var zero: Self { Self(0, 0, 0, 0) }

  /// Returns nil unless there are exactly 32 bytes.
  @inlinable
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 32 else { return nil }
    var iterator = bytes.makeIterator()
    w0 = bigEndianWord(&iterator)
    w1 = bigEndianWord(&iterator)
    w2 = bigEndianWord(&iterator)
    w3 = bigEndianWord(&iterator)
  }

  /// Reinterprets the same bytes in another role. The call site explains why that is correct.
  @inlinable
  package init<Other>(reinterpreting other: Bytes32<Other>) {
    self.init(other.w0, other.w1, other.w2, other.w3)
  }

  @inlinable
  package var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      storeBigEndian(w0, in: buffer, at: 0)
      storeBigEndian(w1, in: buffer, at: 8)
      storeBigEndian(w2, in: buffer, at: 16)
      storeBigEndian(w3, in: buffer, at: 24)
      count = 32
    }
  }

  /// Thirty-two bytes from the system's random number generator.
  @inlinable
  package static func random() -> Self {
    var generator = SystemRandomNumberGenerator()
    return Self(generator.next(), generator.next(), generator.next(), generator.next())
  }

  /// Compares two values as numbers, which is also the order of their bytes.
  @inlinable
  public static func < (a: Self, b: Self) -> Bool {
    (a.w0, a.w1, a.w2, a.w3) < (b.w0, b.w1, b.w2, b.w3)
  }

  /// Hashes the value.
  @inlinable
  public func hash(into hasher: inout Hasher) {
    hasher.combine(w0)
    hasher.combine(w1)
    hasher.combine(w2)
    hasher.combine(w3)
  }
}

extension Bytes16: CustomStringConvertible {
  /// Lower-case hexadecimal, for logs and dumps. IDs are not secret.
  public var description: String { hexadecimal(bytes) }

  /// z-base-32, the form in which IDs appear in the API and in URLs.
  public var text: String { ZBase32.encode(bytes) }

  /// Decodes the form of ``text``. Returns nil if it is not canonical.
  ///
  /// ```swift
  /// let isForNode = ZDCNodeID(text: node.cloudID) != nil
  /// ```
  public init?(text: some StringProtocol) {
    guard let bytes = ZBase32.decode(text, byteCount: 16) else { return nil }
    self.init(bytes)
  }
}

extension Bytes32: CustomStringConvertible {
  /// Lower-case hexadecimal, for logs and dumps. IDs and hashes are not secret; keys never have this type.
  public var description: String { hexadecimal(bytes) }

  /// z-base-32, the form in which IDs appear in the API and in URLs.
  public var text: String { ZBase32.encode(bytes) }

  /// Decodes the form of ``text``. Returns nil if it is not canonical.
  public init?(text: some StringProtocol) {
    guard let bytes = ZBase32.decode(text, byteCount: 32) else { return nil }
    self.init(bytes)
  }
}

@inlinable
func bigEndianWord<I: IteratorProtocol<UInt8>>(_ iterator: inout I) -> UInt64 {
  var word: UInt64 = 0
  for _ in 0..<8 { word = word << 8 | UInt64(iterator.next() ?? 0) }
  return word
}

@inlinable
func storeBigEndian(_ word: UInt64, in buffer: UnsafeMutableBufferPointer<UInt8>, at offset: Int) {
  UnsafeMutableRawBufferPointer(buffer).storeBytes(of: word.bigEndian, toByteOffset: offset, as: UInt64.self)
}

package func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  var text = ""
  for byte in bytes {
    text.unicodeScalars.append(hexadecimalDigit(byte >> 4))
    text.unicodeScalars.append(hexadecimalDigit(byte & 15))
  }
  return text
}

private func hexadecimalDigit(_ value: UInt8) -> Unicode.Scalar {
  Unicode.Scalar(value < 10 ? 48 + value : 87 + value)
}
