import Testing

/// No row of the catalogue is left out silently: each is a scenario here, is covered by another test, or waits for the
/// feature that it is about.
struct HostileCatalogueTests {
  enum Place: Sendable {
    /// A scenario of ``HostileScenario``.
    case scenario
    /// Tested where the decision is made.
    case elsewhere(String)
    /// Pending until the feature that it is about exists.
    case due(String)
  }

  static let attacks: [String: Place] = [
    "A1": .scenario, "A2": .elsewhere("HandleTests.aUserWithoutTheClaim, HandleTests.aColludingUser"),
    "A3": .due("the log"), "A4": .scenario, "A5": .scenario, "A6": .scenario,
    "A7": .elsewhere("HostileServerTests.alteredKeyrings_areAnsweredAlike"), "A8": .scenario, "A9": .scenario,
    "A10": .scenario,
    "A11": .elsewhere("DeviceLinkTests"), "A12": .elsewhere("LocalSealingTests"),
    "B1": .scenario, "B2": .scenario, "B3": .scenario, "B4": .scenario, "B5": .scenario, "B6": .scenario,
    "B7": .scenario, "B8": .scenario, "B9": .elsewhere("LargeContentTests"), "B10": .elsewhere("ContentTests"),
    "B11": .scenario, "B12": .scenario,
    "C1": .scenario, "C2": .scenario, "C3": .scenario, "C4": .scenario, "C5": .scenario, "C6": .scenario,
    "C7": .scenario, "C8": .scenario, "C9": .scenario, "C10": .scenario, "C11": .scenario, "C12": .scenario,
    "C13": .elsewhere("BlobTests"), "C14": .scenario, "C15": .elsewhere("HostileExportTests"), "C16": .scenario,
    "C17": .scenario, "C18": .scenario, "C19": .due("sharing"),
  ]

  static let list: [Int: Place] = [
    1: .scenario, 2: .scenario, 3: .elsewhere("HandleTests.aColludingUser"), 4: .due("the log"), 5: .due("the log"),
    6: .scenario, 7: .scenario,
    8: .scenario, 9: .scenario, 10: .elsewhere("HostileServerTests.alteredKeyrings_areAnsweredAlike"), 11: .scenario,
    12: .scenario, 13: .scenario,
    14: .elsewhere("DeviceLinkTests"), 15: .elsewhere("LocalSealingTests"), 16: .scenario, 17: .scenario, 18: .scenario,
    19: .scenario, 20: .scenario, 21: .elsewhere("LargeContentTests"), 22: .elsewhere("ContentTests"),
    23: .scenario, 24: .scenario, 25: .scenario, 26: .scenario, 27: .scenario, 28: .scenario, 29: .scenario,
    30: .scenario, 31: .scenario, 32: .scenario, 33: .due("sharing"), 34: .scenario, 35: .scenario,
    36: .elsewhere("HostileExportTests"), 37: .scenario, 38: .due("sharing"),
    39: .elsewhere("HostileMessageTests, GraftAttackTests"),
    40: .elsewhere("MessageTests.strangersWait_untilTheyAreAccepted, HostileProfileTests"),
    41: .elsewhere("MessageGapTests.theSameMessageAHundredTimes_alsoAfterItsDeletion_isOneCallback"),
    42: .elsewhere("MessageGapTests.aDroppedMessageIsReportedOnce_andTwoThatAreSwappedAreNot"),
    43: .elsewhere("MessageGapTests.anEndlessMailboxIsReadUpToItsLimit, InboxTests.aFloodOfStrangersStaysBounded"),
    44: .elsewhere("SessionTests"),
    45: .due("push notifications"), 46: .scenario, 47: .scenario, 48: .scenario, 49: .due("sharing"),
    50: .due("the log"), 51: .due("the log"), 52: .elsewhere("DeviceLinkTests"),
  ]

  private static let scenarios =
    HostileScenario.log + HostileScenario.tree + HostileScenario.content + HostileScenario.identity
    + HostileScenario.server

  @Test func everyRow_isAScenario_orSaysWhereItIs() {
    let tested = Set(Self.scenarios.flatMap(\.rows))
    var promised: Set<String> = []
    for (row, place) in Self.attacks { if case .scenario = place { promised.insert(row) } }
    for (row, place) in Self.list { if case .scenario = place { promised.insert(String(row)) } }
    #expect(promised.subtracting(tested) == [], "rows without a scenario")
    let known = Set(Self.attacks.keys).union(Self.list.keys.map(String.init)).union(["D12"])
    #expect(tested.subtracting(known) == [], "scenarios of no row")
    #expect(Self.attacks.count == 12 + 12 + 19 && Set(Self.list.keys) == Set(1...52))
  }

  @Test func missingAttacks_arePrinted() {
    let due = Self.list.compactMap { row, place -> String? in
      if case .due(let what) = place { "\(row): with \(what)" } else { nil }
    }
    print("hostile scenarios: \(Self.scenarios.count); due: \(due.sorted().joined(separator: ", "))")
    #expect(due.count == 8)
  }
}
