import Testing

@testable import ZDCClientStore

struct PointerChoiceTests {
  /// Pointers as "zone place rank"; the zones whose pointer is the last one of a circle.
  @Test(arguments: [
    ("1 2 a, 2 3 b", []), ("1 2 a, 2 1 b", [2]), ("1 2 b, 2 1 a", [1]), ("1 2 a, 2 3 b, 3 1 c", [3]),
    ("1 2 a, 2 3 b, 3 2 c", [3]), ("1 2 z, 2 3 b, 3 2 c", [3]), ("1 2 a, 2 1 b, 3 4 d, 4 3 c, 5 1 e", [2, 3]),
    ("1 1 a", [1]), ("", []),
  ])
  func theLastPointerOfEachCircleIsALeaf(text: String, leaves: [Int64]) throws {
    var choices: [Int64: PointerChoice] = [:]
    for part in text.split(separator: ",") {
      let words = part.split(separator: " ")
      let (zone, place) = (try #require(Int64(words[0])), try #require(Int64(words[1])))
      choices[zone] = PointerChoice(pointer: zone * 10, place: place, isShown: true, rank: String(words[2]))
    }
    #expect(PointerChoice.leaves(of: choices).sorted() == leaves)
  }
}
