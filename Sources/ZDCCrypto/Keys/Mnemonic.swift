internal import Crypto

/// The reason why words are not an access key. It holds positions, never words.
package enum MnemonicError: Error, Sendable, Hashable {
  /// There must be 24 words.
  case wordCount(Int)
  /// The word at this position (from 1) is not in the list.
  case unknownWord(position: Int)
  /// All words are in the list, but their checksum is wrong: two are swapped, or one was replaced by another word of
  /// the list.
  case checksum
}

extension MnemonicError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .wordCount(let count): "an access key has 24 words, not \(count)"
    case .unknownWord(let position): "word \(position) is not in the list"
    case .checksum: "the words do not belong together"
    }
  }
}

/// BIP39, English, 24 words: 256 bits and an 8-bit checksum. The "seed" of BIP39 is not used.
package enum Mnemonic {
  package static let wordCount = 24

  /// Encodes exactly 32 bytes.
  static func encode(_ entropy: [UInt8]) -> [String] {
    let bits = entropy + [checksum(entropy)]
    return (0..<wordCount).map { words[index(at: $0, in: bits)] }
  }

  /// Decodes 24 words, spelled exactly as in the list.
  static func decode(_ phrase: [String]) throws(MnemonicError) -> [UInt8] {
    guard phrase.count == wordCount else { throw .wordCount(phrase.count) }
    var bytes = [UInt8](repeating: 0, count: 33)
    for (position, word) in phrase.enumerated() {
      guard let index = indexByWord[Array(word.utf8)] else { throw .unknownWord(position: position + 1) }
      store(index, at: position, in: &bytes)
    }
    let entropy = Array(bytes.prefix(32))
    guard checksum(entropy) == bytes[32] else { throw .checksum }
    return entropy
  }

  /// Splits words as a person types them: any whitespace between them, capital letters allowed.
  package static func split(typed text: String) -> [String] {
    text.lowercased().split(whereSeparator: \.isWhitespace).map(String.init)
  }

  /// The word list, for completion while typing.
  package static let words: [String] = PackageResources.bip39_english_txt
    .split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }

  // Keyed by bytes: String equality ignores normalization, and only one spelling is right.
  private static let indexByWord: [[UInt8]: Int] = Dictionary(
    uniqueKeysWithValues: words.enumerated().map { (Array($1.utf8), $0) })

  private static func checksum(_ entropy: [UInt8]) -> UInt8 {
    SHA256.hash(data: entropy).first(where: { _ in true }) ?? 0
  }

  /// Returns the 11 bits of word `position`, which span at most three bytes.
  private static func index(at position: Int, in bits: [UInt8]) -> Int {
    let first = position * 11
    var window = 0
    for offset in 0..<3 {
      let byte = first / 8 + offset
      window = window << 8 | (byte < bits.count ? Int(bits[byte]) : 0)
    }
    return window >> (13 - first % 8) & 0x7FF
  }

  private static func store(_ index: Int, at position: Int, in bytes: inout [UInt8]) {
    for bit in 0..<11 where index >> (10 - bit) & 1 == 1 {
      let target = position * 11 + bit
      bytes[target / 8] |= 0x80 >> UInt8(target % 8)
    }
  }
}
