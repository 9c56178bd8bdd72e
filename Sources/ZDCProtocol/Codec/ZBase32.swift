/// z-base-32: the text form of IDs. Lower case, no padding, canonical (unused bits are zero).
package enum ZBase32 {
  private static let alphabet = Array("ybndrfg8ejkmcpqxot1uwisza345h769".utf8)
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }()

  package static func encode(_ bytes: some Collection<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 8 + 4) / 5)
    var pending: UInt32 = 0
    var bits = 0
    for byte in bytes {
      pending = pending << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(pending >> UInt32(bits) & 31)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(pending << UInt32(5 - bits) & 31)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns nil for an invalid character, a wrong length, or bits set beyond the last byte.
  package static func decode(_ text: some StringProtocol, byteCount: Int? = nil) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count * 5 / 8)
    var pending: UInt32 = 0
    var bits = 0
    for character in text.utf8 {
      let value = values[Int(character)]
      guard value < 32 else { return nil }
      pending = pending << 5 | UInt32(value)
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
      }
    }
    let isCanonical = bits < 5 && pending & (1 << UInt32(bits) - 1) == 0
    guard isCanonical, byteCount == nil || byteCount == bytes.count else { return nil }
    return bytes
  }
}
