import Foundation
import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct NameFoldingTests {
  /// The five columns of NormalizationTest: NFC of 1, 2 and 3 is 2, NFC of 4 and 5 is 4.
  @Test func everyRowOfUnicodesNormalizationTestFoldsAsPublished() throws {
    guard let data = try PublishedVectors.data("unicode/NormalizationTest.txt") else { return }
    var rows = 0
    for line in String(decoding: data, as: UTF8.self).split(separator: "\n") {
      guard let first = line.utf8.first, first != UInt8(ascii: "#"), first != UInt8(ascii: "@") else { continue }
      let columns = line.split(separator: ";", omittingEmptySubsequences: false).prefix(5).map(text)
      for (source, expected) in [(0, 1), (1, 1), (2, 1), (3, 3), (4, 3)] {
        let folded = try NameFolding.fold(columns[source])
        #expect(folded.utf8 == Array(columns[expected].utf8), "row \(line)")
      }
      rows += 1
    }
    #expect(rows == 19_074)
  }

  private func text(_ codePoints: Substring) -> String {
    var text = ""
    for scalar in codePoints.split(separator: " ").compactMap({ UInt32($0, radix: 16).flatMap(Unicode.Scalar.init) }) {
      text.unicodeScalars.append(scalar)
    }
    return text
  }

  @Test func composedAndDecomposedAreOneName() throws {
    #expect(try NameFolding.fold("e\u{301}") == NameFolding.fold("é"))
    #expect(try NameFolding.fold("e\u{301}").utf8 == [0xC3, 0xA9])
  }

  @Test func caseStays() throws {
    #expect(try NameFolding.fold("Straße") != NameFolding.fold("STRASSE"))
    #expect(try NameFolding.fold("a") != NameFolding.fold("A"))
    #expect(try NameFolding.fold("İ").utf8 == Array("İ".utf8))
  }

  @Test func emptyNullAndLongAreRefused() throws {
    #expect(throws: NameError.empty) { try NameFolding.fold("") }
    #expect(throws: NameError.containsNull) { try NameFolding.fold("a\0b") }
    #expect(throws: NameError.tooLong) { try NameFolding.fold(String(repeating: "a", count: 1_025)) }
    #expect(try NameFolding.fold(String(repeating: "a", count: 1_024)).utf8.count == 1_024)
  }

  @Test func theLimitCountsFoldedBytes() throws {
    // 1,536 bytes decomposed, 1,024 composed.
    let name = String(repeating: "e\u{301}", count: 512)
    #expect(name.utf8.count == 1_536)
    #expect(try NameFolding.fold(name).utf8.count == 1_024)
    #expect(throws: NameError.tooLong) { try NameFolding.fold(name + "x") }
  }

  @Test func hostileLookingNamesAreJustNames() throws {
    for name in ["..", "a/b", "CON", "\u{202E}txt.exe", " ", "\n", "👨‍👩‍👧"] {
      #expect(try NameFolding.fold(name).string.utf8.elementsEqual(name.utf8))
    }
  }
}
