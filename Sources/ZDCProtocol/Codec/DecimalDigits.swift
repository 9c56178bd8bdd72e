extension ArraySlice<UInt8> {
  /// Returns digits of a hash that people compare: these bytes, at most 8, as a big-endian number modulo 10^`count`, with
  /// leading zeros.
  package func decimalDigits(_ count: Int) -> String {
    var rest = reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    var digits: [UInt8] = []
    for _ in 0..<count {
      digits.append(UInt8(ascii: "0") + UInt8(rest % 10))
      rest /= 10
    }
    return String(decoding: digits.reversed(), as: UTF8.self)
  }
}
