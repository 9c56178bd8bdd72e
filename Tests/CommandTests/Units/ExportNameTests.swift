import Foundation
import Testing
import ZDCCommands

@Suite("Names of exported files")
struct ExportNameTests {
  @Test func theCorpusHasAtLeast200Names() {
    #expect(Set(HostileNames.all.map { Array($0.utf8) }).count >= 200)
  }

  @Test(arguments: ExportNamePolicy.allCases)
  func everyHostileName_becomesOneSafeComponent(_ policy: ExportNamePolicy) {
    for name in HostileNames.all {
      let safe = ExportName.safe(name, policy: policy)
      #expect(Self.dangers(safe).isEmpty, "\(name.debugDescription) became \(safe.debugDescription)")
      #expect(ExportName.safe(safe, policy: policy) == safe, "a safe name stays: \(safe.debugDescription)")
    }
  }

  private static func dangers(_ name: String) -> [String] {
    var dangers: [String] = []
    if name.isEmpty || name == "." || name == ".." { dangers.append("no name") }
    if name.utf8.count > 255 { dangers.append("too long") }
    if name.utf8.contains(0x2F) || name.utf8.contains(0) { dangers.append("separator or zero") }
    for scalar in name.unicodeScalars {
      if scalar.properties.generalCategory == .control { dangers.append("control") }
      if (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value) { dangers.append("bidi") }
    }
    return dangers
  }

  @Test func portableNames_areSafeOnWindowsToo() {
    for name in HostileNames.all {
      let safe = ExportName.safe(name, policy: .portable)
      #expect(safe.rangeOfCharacter(from: CharacterSet(charactersIn: "<>:\"|?*\\")) == nil, "\(safe.debugDescription)")
      #expect(safe.last != "." && safe.last != " ", "\(safe.debugDescription)")
      let base = safe.prefix { $0 != "." }.uppercased().trimmingCharacters(in: .whitespaces)
      #expect(!["CON", "PRN", "AUX", "NUL", "COM1", "LPT9"].contains(base), "\(safe.debugDescription)")
    }
  }

  @Test func ordinaryNames_stayAsTheyAre() {
    for name in [
      "a.txt", ".profile", "x y", "naïve café.md", "日本語", "a-b_c~1", "שלום", "a.b.c", "👩‍👩‍👧.png", "...x", "x..y",
    ] {
      #expect(ExportName.safe(name) == name)
      #expect(ExportName.safe(name, policy: .portable) == name)
    }
  }

  @Test func aLongName_keepsItsExtension_andNoHalfCharacter() {
    let safe = ExportName.safe(String(repeating: "é", count: 200) + ".txt")
    #expect(safe.hasSuffix(".txt"))
    #expect(safe.utf8.count <= 255)
    #expect(safe.unicodeScalars.dropLast(4).allSatisfy { $0 == "é" })
  }

  @Test(arguments: ExportNamePolicy.allCases, [false, true])
  func namesOfOneFolder_neverMeet(_ policy: ExportNamePolicy, _ foldsCase: Bool) {
    let assigned = ExportNames.assign(HostileNames.all, policy: policy, foldsCase: foldsCase)
    #expect(assigned.count == HostileNames.all.count)
    #expect(Set(assigned).count == assigned.count)
    if foldsCase { #expect(Set(assigned.map { $0.lowercased() }).count == assigned.count) }
    for name in assigned { #expect(Self.dangers(name).isEmpty, "\(name.debugDescription)") }
  }

  @Test func assigning_doesNotDependOnTheOrder() {
    let names = HostileNames.all
    let forward = Dictionary(zip(names.map { Array($0.utf8) }, ExportNames.assign(names))) { first, _ in first }
    let backward = Dictionary(zip(names.reversed().map { Array($0.utf8) }, ExportNames.assign(names.reversed()))) {
      first, _ in first
    }
    for (name, safe) in forward where names.filter({ Array($0.utf8) == name }).count == 1 {
      #expect(backward[name] == safe)
    }
  }

  @Test func aNameThatIsSafe_keepsIt_whateverAnotherBecomes() {
    #expect(ExportNames.assign(["a/b", "a_b"]) == ["a_b~2", "a_b"])
    #expect(ExportNames.assign(["..", "__", "."]) == ["__~2", "__", "_"])
    #expect(ExportNames.assign(["README", "readme"], foldsCase: true) == ["README", "readme~2"])
    #expect(ExportNames.assign(["README", "readme"]) == ["README", "readme"])
    #expect(ExportNames.assign(["x/.txt", "x_.txt"]) == ["x_~2.txt", "x_.txt"])
  }

  /// A folder of a hostile writer: each name costs a few lookups, whatever the other names are.
  @Test(
    arguments: [
      // The same name; names that are already taken; names that collide only when they are shortened to fit a number.
      { _ in "same" }, { $0 < 10_000 ? "same~\($0)" : "same" },
      { String(repeating: "x", count: 250) + "\(($0 / 2) % 90_000 + 10_000)" },
    ] as [@Sendable (Int) -> String])
  func twentyThousandNamesThatMeet_costAFewLooksEach(_ name: @Sendable (Int) -> String) {
    var free = FreeNames { $0 }
    let assigned = (0..<20_000).map { free.take(name($0)) }
    #expect(Set(assigned).count == 20_000)
    #expect(free.looks < 4 * 20_000)
  }
}
