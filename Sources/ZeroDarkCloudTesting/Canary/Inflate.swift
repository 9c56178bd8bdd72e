/// Decodes DEFLATE (RFC 1951) up to the first invalid byte. The output is bounded. For the canary scanner only.
struct Inflate {
  private static let limit = 1 << 18
  private static let lengthBase = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
  ]
  private static let lengthExtra = [
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
  ]
  private static let distanceBase = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
    8193, 12289, 16385, 24577,
  ]
  private static let codeOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

  private struct End: Error {}

  private let bytes: [UInt8]
  private var position: Int
  private var bits: UInt64 = 0
  private var bitCount = 0
  private var out: [UInt8] = []

  private init(_ bytes: [UInt8], from start: Int) {
    self.bytes = bytes
    position = start
  }

  /// Returns all bytes decoded before the end or the first error.
  static func inflate(_ bytes: [UInt8], from start: Int = 0) -> [UInt8] {
    var inflate = Inflate(bytes, from: start)
    do { while try inflate.block() {} } catch {}
    return inflate.out
  }

  /// - Returns: Whether another block follows.
  private mutating func block() throws -> Bool {
    let isLast = try take(1) == 1
    switch try take(2) {
    case 0: try stored()
    case 1: try compressed(Self.fixed.literals, Self.fixed.distances)
    case 2:
      let (literals, distances) = try tables()
      try compressed(literals, distances)
    default: throw End()
    }
    return !isLast
  }

  private mutating func stored() throws {
    _ = try take(bitCount & 7)
    let length = try take(16)
    guard try take(16) == ~length & 0xffff else { throw End() }
    for _ in 0..<length { try emit(UInt8(try take(8))) }
  }

  private mutating func compressed(_ literals: Codes, _ distances: Codes) throws {
    while true {
      let symbol = try decode(literals)
      if symbol == 256 { return }
      guard symbol > 256 else {
        try emit(UInt8(symbol))
        continue
      }
      guard symbol <= 285 else { throw End() }
      let length = Self.lengthBase[symbol - 257] + (try take(Self.lengthExtra[symbol - 257]))
      let code = try decode(distances)
      guard code < 30 else { throw End() }
      let distance = Self.distanceBase[code] + (try take(max(0, code / 2 - 1)))
      guard distance <= out.count else { throw End() }
      for _ in 0..<length { try emit(out[out.count - distance]) }
    }
  }

  private mutating func emit(_ byte: UInt8) throws {
    guard out.count < Self.limit else { throw End() }
    out.append(byte)
  }

  // MARK: Codes

  /// A canonical Huffman code: the number of codes of each length, and the symbols in order.
  private struct Codes {
    var counts = [Int](repeating: 0, count: 16)
    var symbols: [Int] = []

    init(lengths: some Collection<Int>) {
      for length in lengths where length > 0 { counts[length] += 1 }
      symbols = lengths.enumerated().filter { $0.element > 0 }
        .sorted { ($0.element, $0.offset) < ($1.element, $1.offset) }.map(\.offset)
    }
  }

  private static let fixed = (
    literals: Codes(
      lengths: [Int](repeating: 8, count: 144) + [Int](repeating: 9, count: 112) + [Int](repeating: 7, count: 24)
        + [Int](repeating: 8, count: 8)),
    distances: Codes(lengths: [Int](repeating: 5, count: 30))
  )

  private mutating func tables() throws -> (Codes, Codes) {
    let literalCount = try take(5) + 257
    let distanceCount = try take(5) + 1
    let codeCount = try take(4) + 4
    var codeLengths = [Int](repeating: 0, count: 19)
    for index in 0..<codeCount { codeLengths[Self.codeOrder[index]] = try take(3) }
    let codes = Codes(lengths: codeLengths)
    var lengths: [Int] = []
    while lengths.count < literalCount + distanceCount {
      let symbol = try decode(codes)
      switch symbol {
      case 0...15: lengths.append(symbol)
      case 16:
        guard let last = lengths.last else { throw End() }
        lengths += [Int](repeating: last, count: 3 + (try take(2)))
      case 17: lengths += [Int](repeating: 0, count: 3 + (try take(3)))
      default: lengths += [Int](repeating: 0, count: 11 + (try take(7)))
      }
    }
    return (
      Codes(lengths: lengths[..<literalCount]),
      Codes(lengths: lengths[literalCount..<min(lengths.count, literalCount + distanceCount)])
    )
  }

  private mutating func decode(_ codes: Codes) throws -> Int {
    var code = 0
    var first = 0
    var index = 0
    for length in 1..<16 {
      code |= try take(1)
      let count = codes.counts[length]
      if code - count < first { return codes.symbols[index + code - first] }
      index += count
      first = (first + count) << 1
      code <<= 1
    }
    throw End()
  }

  private mutating func take(_ count: Int) throws -> Int {
    while bitCount < count {
      guard position < bytes.count else { throw End() }
      bits |= UInt64(bytes[position]) << UInt64(bitCount)
      position += 1
      bitCount += 8
    }
    let value = Int(bits & ((1 << UInt64(count)) - 1))
    bits >>= UInt64(count)
    bitCount -= count
    return value
  }
}
