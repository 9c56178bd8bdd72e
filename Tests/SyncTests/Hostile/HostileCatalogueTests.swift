import Foundation
import Testing

/// No row of the catalogue is left out silently: each is a scenario here, is covered by another test, waits for the
/// feature that it is about, or is about a feature that this version does not have.
struct HostileCatalogueTests {
  enum Place: Sendable {
    /// A scenario of ``HostileScenario``.
    case scenario
    /// A scenario with a stranger or the owner's own keys, and tests with members of a shared branch.
    case members(String)
    /// Tested where the decision is made.
    case elsewhere(String)
    /// Pending until the feature that it is about exists.
    case due(String)
    /// The mechanism that it attacks does not exist.
    case notBuilt(String)

    var tests: [String] {
      switch self {
      case .members(let tests), .elsewhere(let tests): tests.components(separatedBy: ", ")
      case .scenario, .due, .notBuilt: []
      }
    }
  }

  private static let matrix = "MemberMatrixTests.aDeviceAppliesOnlyWhatARoleAllows"
  private static let retiredKey = "MemberAttackTests.aRetiredKeyOfAMemberPutsNothing"
  private static let oldGrant = "MemberAttackTests.aGrantOfAnOlderGenerationOpensNothing"
  private static let alteredSecrets =
    "HostileServerTests.alteredKeyrings_areAnsweredAlike, HostileServerTests.alteredGrants_openNothing"
  private static let forgedMessage = "HostileMessageTests.aForgedMessageStaysOut_andTheNextOneArrives"
  private static let repeatedMessage =
    "MessageGapTests.theSameMessageAHundredTimes_alsoAfterItsDeletion_isOneCallback"
  private static let droppedMessage = "MessageGapTests.aDroppedMessageIsReportedOnce_andTwoThatAreSwappedAreNot"
  private static let flood =
    "MessageGapTests.anEndlessMailboxIsReadUpToItsLimit, InboxTests.aFloodOfStrangersStaysBounded"
  private static let stranger =
    "MessageTests.strangersWait_untilTheyAreAccepted, "
    + "HostileProfileTests.aForgedProfileChangesNoName_andTheNextHonestOneDoes"
  private static let invitation =
    "\(forgedMessage), GraftAttackTests.anotherHead, GraftEngineTests.accessAfterTheInvitation"

  static let attacks: [String: Place] = [
    "A1": .scenario, "A2": .elsewhere("HandleTests.aUserWithoutTheClaim, HandleTests.aColludingUser"),
    "A3": .due("the log"), "A4": .scenario, "A5": .scenario, "A6": .scenario,
    "A7": .elsewhere(alteredSecrets), "A8": .scenario, "A9": .scenario, "A10": .scenario,
    "A11": .elsewhere("DeviceLinkTests"), "A12": .elsewhere("LocalSealingTests"),
    "B1": .scenario, "B2": .scenario, "B3": .scenario, "B4": .scenario, "B5": .scenario, "B6": .scenario,
    "B7": .scenario, "B8": .scenario, "B9": .elsewhere("LargeContentTests"), "B10": .elsewhere("ContentTests"),
    "B11": .scenario, "B12": .scenario,
    "C1": .scenario, "C2": .scenario, "C3": .scenario, "C4": .members(matrix), "C5": .scenario, "C6": .scenario,
    "C7": .scenario, "C8": .scenario, "C9": .members(oldGrant), "C10": .scenario, "C11": .scenario,
    "C12": .members("\(retiredKey), \(matrix)"), "C13": .elsewhere("BlobTests, PermissionMatrixTests.requests"),
    "C14": .scenario, "C15": .elsewhere("HostileExportTests"), "C16": .scenario,
    "C17": .scenario, "C18": .scenario, "C19": .notBuilt("checkpoints"),
    "D1": .elsewhere(invitation), "D2": .elsewhere(stranger), "D3": .elsewhere(forgedMessage),
    "D4": .elsewhere("\(repeatedMessage), \(droppedMessage)"),
    "D5": .elsewhere("\(forgedMessage), HostileMessageTests.aMessageWithTheIDOfAnotherSenders_isNotTakenForIt"),
    "D6": .elsewhere("\(forgedMessage), MessageTests.anyChangedFieldOutsideBreaksTheSeal"),
    "D7": .elsewhere(flood),
    "D8": .elsewhere("SessionTests.aChallengeWorksOnce_andForTwoMinutes"),
    "D9": .elsewhere("SessionTests.aChallengeLooksTheSameForKnownAndUnknown"),
    "D10": .elsewhere("EventAttackTests.hintThatIsNotTrue_changesNothing"),
    "D11": .elsewhere("StreamFaultTests.clockYearsOff_changesNothing"), "D12": .scenario,
  ]

  static let list: [Int: Place] = [
    1: .scenario, 2: .scenario, 3: .elsewhere("HandleTests.aColludingUser"), 4: .due("the log"), 5: .due("the log"),
    6: .scenario, 7: .scenario,
    8: .scenario, 9: .scenario, 10: .elsewhere(alteredSecrets), 11: .scenario,
    12: .scenario, 13: .scenario,
    14: .elsewhere("DeviceLinkTests"), 15: .elsewhere("LocalSealingTests"), 16: .scenario, 17: .scenario, 18: .scenario,
    19: .scenario, 20: .members(matrix), 21: .elsewhere("LargeContentTests"), 22: .elsewhere("ContentTests"),
    23: .scenario, 24: .scenario, 25: .scenario, 26: .scenario, 27: .members(matrix), 28: .members(matrix),
    29: .scenario,
    30: .scenario, 31: .scenario, 32: .scenario,
    33: .elsewhere(
      "BranchAttackTests.aFormerMemberReadsNothingNew, SharedTreeTests.aRemovedMembersKeys_openNothingNew"),
    34: .members("\(retiredKey), \(matrix)"), 35: .scenario,
    36: .elsewhere("HostileExportTests"), 37: .scenario, 38: .notBuilt("checkpoints"),
    39: .elsewhere(invitation), 40: .elsewhere(stranger), 41: .elsewhere(repeatedMessage),
    42: .elsewhere(droppedMessage), 43: .elsewhere(flood),
    44: .elsewhere("SessionTests"),
    45: .due("push notifications"), 46: .scenario, 47: .scenario, 48: .scenario,
    49: .notBuilt("moves between zones are copies and deletes"),
    50: .due("the log"), 51: .due("the log"), 52: .elsewhere("DeviceLinkTests"),
  ]

  private static let scenarios =
    HostileScenario.log + HostileScenario.tree + HostileScenario.content + HostileScenario.identity
    + HostileScenario.server

  private static var places: [(row: String, place: Place)] {
    attacks.map { ($0.key, $0.value) } + list.map { (String($0.key), $0.value) }
  }

  @Test func everyRow_isAScenario_orSaysWhereItIs() {
    let tested = Set(Self.scenarios.flatMap(\.rows))
    let promised = Self.places.filter { _, place in
      switch place {
      case .scenario, .members: true
      case .elsewhere, .due, .notBuilt: false
      }
    }
    #expect(Set(promised.map(\.row)).subtracting(tested) == [], "rows without a scenario")
    #expect(tested.subtracting(Self.places.map(\.row)) == [], "scenarios of no row")
    #expect(Self.attacks.count == 12 + 12 + 19 + 12 && Set(Self.list.keys) == Set(1...52))
  }

  /// A row names its tests as `Suite` or `Suite.function`.
  @Test func everyTestThatARowNames_exists() throws {
    let known = try Self.testsOfAllTargets()
    for (row, place) in Self.places {
      for test in place.tests { #expect(known.contains(test), "\(row): there is no test \(test)") }
    }
  }

  private static func testsOfAllTargets() throws -> Set<String> {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardizedFileURL
    let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
    var tests: Set<String> = []
    for case let file as URL in files where file.lastPathComponent.contains("Tests") && file.pathExtension == "swift" {
      var suite = ""
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        let words = line.split(separator: " ")
        if line.first != " ", let name = name(after: ["struct", "extension"], words) { suite = name }
        tests.insert(name(after: ["func"], words).map { "\(suite).\($0)" } ?? suite)
      }
    }
    return tests
  }

  private static func name(after keywords: [String], _ words: [Substring]) -> String? {
    guard let index = words.firstIndex(where: { keywords.contains(String($0)) }), index + 1 < words.count else {
      return nil
    }
    return String(words[index + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" })
  }

  @Test func missingAttacks_arePrinted() {
    let due = Self.places.compactMap { row, place -> String? in
      if case .due(let what) = place { "\(row): with \(what)" } else { nil }
    }
    print("hostile scenarios: \(Self.scenarios.count); due: \(due.sorted().joined(separator: ", "))")
    #expect(due.count == 6)
  }
}
