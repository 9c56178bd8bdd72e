import Foundation
import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct MnemonicTests {
  private let words = [
    "legal", "winner", "thank", "year", "wave", "sausage", "worth", "useful", "legal", "winner", "thank", "year",
    "wave", "sausage", "worth", "useful", "legal", "winner", "thank", "year", "wave", "sausage", "worth", "title",
  ]

  @Test func theEmbeddedListIsThePublishedOne() {
    let hash = Bytes32<TreeRole>(sha256: PackageResources.bip39_english_txt)
    #expect(hash.description == "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda")
    #expect(Mnemonic.words.count == 2_048)
  }

  @Test func publishedEnglishRowsOf256Bits_bothWays() throws {
    guard let data = try PublishedVectors.data("bip39/mnemonic_vectors.json") else { return }
    let file = try JSONDecoder().decode([String: [String: [[String]]]].self, from: data)
    let rows = try #require(file["en_US"]?["BIP39"])
    var executed = 0
    for row in rows where row[0].utf8.count == 64 {
      let phrase = row[1].split(separator: " ").map(String.init)
      let key = try AccessKey(words: phrase)
      #expect(key.exportBytes() == [UInt8](hex: row[0]))
      #expect(key.words == phrase)
      executed += 1
    }
    #expect(executed == 8)
  }

  @Test func everyKeySurvivesItsWords() throws {
    for _ in 0..<200 {
      let key = AccessKey.random()
      #expect(try AccessKey(words: key.words) == key)
    }
  }

  @Test func wrongCountIsSaid() {
    #expect(throws: MnemonicError.wordCount(23)) { try AccessKey(words: words.dropLast()) }
    #expect(throws: MnemonicError.wordCount(25)) { try AccessKey(words: words + ["year"]) }
    #expect(throws: MnemonicError.wordCount(0)) { try AccessKey(words: []) }
  }

  @Test func wordOutsideTheListIsNamedByItsPosition() {
    for (wrong, spelling) in [("LEGAL", "upper case"), ("légal", "accent"), ("", "double space"), ("ﬁt", "ligature")] {
      var phrase = words
      phrase[8] = wrong
      #expect(throws: MnemonicError.unknownWord(position: 9), "\(spelling)") { try AccessKey(words: phrase) }
    }
  }

  @Test func swappedWordsFailTheChecksum() {
    var phrase = words
    phrase.swapAt(0, 1)
    #expect(throws: MnemonicError.checksum) { try AccessKey(words: phrase) }
    #expect(MnemonicError.checksum.description == "the words do not belong together")
  }

  @Test func typedTextIsTidied() throws {
    let typed = "  Legal\twinner  thank\n" + words.dropFirst(3).joined(separator: " ") + "\n"
    #expect(try AccessKey(words: Mnemonic.split(typed: typed)) == AccessKey(words: words))
  }

  @Test func errorsHoldNoWord() {
    #expect(MnemonicError.unknownWord(position: 9).description == "word 9 is not in the list")
    #expect(MnemonicError.wordCount(3).description == "an access key has 24 words, not 3")
  }
}
