import Testing
import ZDCTreesystem

@Suite struct NameRulesTests {
  @Test(arguments: [
    ("Foobar.ext", "Foobar 2.ext", "Foobar 3.ext"),
    ("Foobar 2.ext", "Foobar 3.ext", "Foobar 4.ext"),
    ("Foobar", "Foobar 2", "Foobar 3"),
    ("Foobar 9", "Foobar 10", "Foobar 11"),
    ("Track 1.mp3", "Track 2.mp3", "Track 3.mp3"),
    ("a.b.c", "a.b 2.c", "a.b 3.c"),
    (".hidden", ".hidden 2", ".hidden 3"),
    ("ends.", "ends. 2", "ends. 3"),
    ("Mr. Smith", "Mr. Smith 2", "Mr. Smith 3"),
    ("Foobar 02", "Foobar 02 2", "Foobar 02 3"),
    ("Foobar -3", "Foobar -3 2", "Foobar -3 3"),
    ("Foobar ٣", "Foobar ٣ 2", "Foobar ٣ 3"),
    ("12345678901", "12345678901 2", "12345678901 3"),
    ("call 12345678901", "call 12345678901 2", "call 12345678901 3"),
    (" 2", " 2 2", " 2 3"),
    ("🧼", "🧼 2", "🧼 3"),
    (" ", "  2", "  3"),
    (".", ". 2", ". 3"),
  ])
  func aTakenNameGetsTheNextNumber(name: String, second: String, third: String) {
    #expect(Array(NameRules.alternatives(to: name).prefix(2)) == [second, third])
  }

  @Test func theFirstFreeNumberIsTaken() {
    let taken: Set<String> = ["a.txt", "a 2.txt", "a 3.txt", "a 5.txt"]
    #expect(NameRules.conflictFree("a.txt", isTaken: taken.contains) == "a 4.txt")
    #expect(NameRules.conflictFree("b.txt", isTaken: taken.contains) == "b.txt")
  }

  @Test func aNameThatIsAsLongAsMayBeLosesItsEnd() {
    let name = String(repeating: "🧼", count: 256)
    for candidate in NameRules.alternatives(to: name).prefix(20) {
      #expect(candidate.utf8.count <= 1_024)
      #expect(candidate.hasPrefix("🧼🧼"))
      #expect(candidate.dropLast(3).allSatisfy { $0 == "🧼" })
    }
  }

  @Test func noAlternativeRepeatsAndNoneIsTheName() {
    for name in ["a", "a 2", "a 999999999", "a.b", "x 1.tar"] {
      let found = Array(NameRules.alternatives(to: name).prefix(50))
      #expect(Set(found).count == 50)
      #expect(!found.contains(name))
    }
  }
}
