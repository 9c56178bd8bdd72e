/// Reads a canonical object from front to back.
///
/// Every length is compared with the remaining bytes *before* anything is allocated, so a hostile length costs nothing.
/// Short, long and malformed input is ``ZDCSecurityError/Code/nonCanonicalEncoding``. A length above its limit is
/// `limitExceeded`, an unknown version in a preamble `unsupportedVersion`.
package struct ByteReader: Sendable {
  private let bytes: ArraySlice<UInt8>
  private var position: Int

  package init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  package init(_ bytes: [UInt8]) {
    self.init(bytes[...])
  }

  package var remaining: Int { bytes.endIndex - position }

  /// The number of bytes read so far.
  package var offset: Int { position - bytes.startIndex }

  package mutating func read(count: Int) throws(ZDCSecurityError) -> ArraySlice<UInt8> {
    guard count >= 0, count <= remaining else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    defer { position += count }
    return bytes[position..<position + count]
  }

  package mutating func readUInt8() throws(ZDCSecurityError) -> UInt8 { UInt8(try readWord(1)) }
  package mutating func readUInt16() throws(ZDCSecurityError) -> UInt16 { UInt16(try readWord(2)) }
  package mutating func readUInt32() throws(ZDCSecurityError) -> UInt32 { UInt32(try readWord(4)) }
  package mutating func readUInt64() throws(ZDCSecurityError) -> UInt64 { try readWord(8) }

  /// Reads a big-endian number of up to eight bytes.
  ///
  /// Neither generic nor a loop over a slice: in a debug build, those took an eighth of the time of the small-scope tests.
  private mutating func readWord(_ count: Int) throws(ZDCSecurityError) -> UInt64 {
    guard count <= remaining else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    var value: UInt64 = 0
    let end = position + count
    while position < end {
      value = value << 8 | UInt64(bytes[position])
      position += 1
    }
    return value
  }

  /// Reads a boolean: one byte, 0 or 1. Any other value would be a second encoding and is refused.
  package mutating func readBool() throws(ZDCSecurityError) -> Bool {
    let value = try readUInt8()
    guard value <= 1 else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    return value == 1
  }

  package mutating func read16<Role>(
    _ role: Bytes16<Role>.Type = Bytes16<Role>.self
  ) throws(ZDCSecurityError) -> Bytes16<Role> {
    Bytes16(high: try readUInt64(), low: try readUInt64())
  }

  package mutating func read32<Role>(
    _ role: Bytes32<Role>.Type = Bytes32<Role>.self
  ) throws(ZDCSecurityError) -> Bytes32<Role> {
    Bytes32(try readUInt64(), try readUInt64(), try readUInt64(), try readUInt64())
  }

  /// Reads `v16`: a two-byte length and that many bytes.
  package mutating func readVariable16(limit: Int = Int(UInt16.max)) throws(ZDCSecurityError) -> ArraySlice<UInt8> {
    try readVariable(length: Int(try readUInt16()), limit: limit)
  }

  /// Reads `v32`: a four-byte length and that many bytes.
  package mutating func readVariable32(limit: Int) throws(ZDCSecurityError) -> ArraySlice<UInt8> {
    try readVariable(length: Int(try readUInt32()), limit: limit)
  }

  private mutating func readVariable(length: Int, limit: Int) throws(ZDCSecurityError) -> ArraySlice<UInt8> {
    guard length <= limit else { throw ZDCSecurityError(.limitExceeded) }
    return try read(count: length)
  }

  /// Reads the six bytes at the start of every stored object.
  package mutating func readPreamble(magic: String) throws(ZDCSecurityError) {
    guard try read(count: 4).elementsEqual(magic.utf8) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    let version = try readUInt8()
    let suite = try readUInt8()
    guard version == 1, suite == 1 else { throw ZDCSecurityError(.unsupportedVersion) }
  }

  /// Checks that all input is consumed. A trailing byte would be covered by a hash but have no meaning.
  package func finish() throws(ZDCSecurityError) {
    guard remaining == 0 else { throw ZDCSecurityError(.nonCanonicalEncoding) }
  }
}
