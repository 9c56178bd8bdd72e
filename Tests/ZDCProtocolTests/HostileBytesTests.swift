import Testing
import ZDCProtocol

/// Whatever bytes arrive: never a trap, always a typed error, and accepted bytes have exactly one encoding.
@Suite struct HostileBytesTests {
  private static let seed: UInt64 = 0x5eed_2026

  /// Returns whether the bytes were accepted.
  @discardableResult
  private func checkOneEncoding(
    _ codec: Codec, _ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation
  ) -> Bool {
    var again: [UInt8]?
    let code = refusal(sourceLocation: sourceLocation) { again = try codec.recode(bytes) }
    guard let again else { return false }
    #expect(code == nil)
    if again != bytes { Issue.record("accepted, but encodes differently", sourceLocation: sourceLocation) }
    return true
  }

  @Test(arguments: Codec.all) func everyObjectSurvivesARoundTrip(codec: Codec) {
    var generator = SeededGenerator(seed: Self.seed)
    for _ in 0..<50 { #expect(checkOneEncoding(codec, codec.sample(&generator))) }
  }

  @Test(arguments: Codec.all) func anyOtherLengthIsRefused(codec: Codec) {
    var generator = SeededGenerator(seed: Self.seed)
    let bytes = codec.sample(&generator)
    var accepted = 0
    for length in 0..<bytes.count where checkOneEncoding(codec, Array(bytes.prefix(length))) { accepted += 1 }
    #expect(accepted == codec.validPrefixes)
    for extra in [1, 2, 64] { #expect(!checkOneEncoding(codec, bytes + generator.bytes(extra).map { $0 | 0x80 })) }
  }

  /// Writes small and huge numbers over every offset, so that every length and count field grows and shrinks.
  @Test(arguments: Codec.all) func everyLengthFieldBlownUpIsRefusedBeforeItIsAllocated(codec: Codec) {
    var generator = SeededGenerator(seed: Self.seed)
    let bytes = codec.sample(&generator)
    for width in [1, 2, 4] {
      for filler in [UInt8(0xff), 0x00] {
        for offset in 0...(bytes.count - width) {
          var changed = bytes
          for index in offset..<offset + width { changed[index] = filler }
          checkOneEncoding(codec, changed)
        }
      }
    }
  }

  @Test(arguments: Codec.all) func everyFlippedBitIsAnErrorOrAnotherObject(codec: Codec) {
    var generator = SeededGenerator(seed: Self.seed)
    let bytes = codec.sample(&generator)
    for offset in bytes.indices {
      var changed = bytes
      changed[offset] ^= 1 << UInt8.random(in: 0...7, using: &generator)
      // Equal encodings would mean that two inputs have the same meaning.
      checkOneEncoding(codec, changed)
    }
  }

  @Test(arguments: Codec.all) func randomDamageNeverTraps(codec: Codec) {
    var generator = SeededGenerator(seed: Self.seed)
    for _ in 0..<1_500 {
      var bytes = codec.sample(&generator)
      for _ in 0..<Int.random(in: 1...4, using: &generator) { Damage.apply(to: &bytes, using: &generator) }
      checkOneEncoding(codec, bytes)
    }
  }

  @Test(arguments: Codec.all) func noiseAfterAGoodPreambleNeverTraps(codec: Codec) {
    var generator = SeededGenerator(seed: Self.seed)
    let preamble = Array(codec.sample(&generator).prefix(6))
    for _ in 0..<500 {
      let noise = generator.bytes(Int.random(in: 0...600, using: &generator))
      checkOneEncoding(codec, preamble + noise)
      checkOneEncoding(codec, noise)
    }
  }
}

/// Random damage to bytes.
enum Damage {
  static func apply(to bytes: inout [UInt8], using generator: inout SeededGenerator) {
    guard !bytes.isEmpty else {
      bytes = generator.bytes(9)
      return
    }
    let start = Int.random(in: bytes.indices, using: &generator)
    let end = min(bytes.count, start + Int.random(in: 1...40, using: &generator))
    switch Int.random(in: 0..<6, using: &generator) {
    case 0: bytes[start] ^= 1 << UInt8.random(in: 0...7, using: &generator)
    case 1: bytes.removeSubrange(start..<end)
    case 2: bytes.insert(contentsOf: generator.bytes(end - start), at: start)
    case 3: bytes.insert(contentsOf: bytes[start..<end], at: start)
    case 4:
      bytes.replaceSubrange(
        start..<end, with: repeatElement(UInt8.random(in: 0...255, using: &generator), count: end - start))
    default: bytes.replaceSubrange(start..<end, with: bytes[start..<end].reversed())
    }
  }
}
