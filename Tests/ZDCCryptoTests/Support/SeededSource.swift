import Crypto
import ZDCCrypto

/// Reproducible random bytes: SHA-256(seed ‖ u64 counter), truncated to the requested length.
struct SeededSource: RandomSource {
  private let seed: [UInt8]
  private var counter: UInt64 = 0

  init(_ seed: String) {
    self.seed = Array(seed.utf8)
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    while result.count < count {
      let number = (0..<8).map { UInt8(truncatingIfNeeded: counter >> UInt64(8 * (7 - $0))) }
      result += Array(SHA256.hash(data: seed + number))
      counter += 1
    }
    return Array(result.prefix(count))
  }
}

extension SeededSource: RandomNumberGenerator {
  mutating func next() -> UInt64 {
    bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
