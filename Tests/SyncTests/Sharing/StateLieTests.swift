import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The state with which the log of a shared branch begins. A member who does not read the tree around the branch asks
/// the server for it, and has only the owner's signature on its root.
struct StateLieTests {
  /// The commits of a year: 50, or as many as `ZDC_BRANCH_COMMITS` says.
  private static let yearOfCommits =
    ProcessInfo.processInfo.environment["ZDC_BRANCH_COMMITS"].flatMap { Int($0) } ?? 50

  typealias People = ListChangeTests.People

  enum StateLie: CaseIterable, Sendable {
    case flippedBit, entryLess, entryMore, otherOrder, ofAnotherBranch, empty, endless, notFound

    var code: String {
      switch self {
      case .flippedBit, .entryLess, .ofAnotherBranch: "splitMismatch"
      case .entryMore, .endless: "limitExceeded"
      case .otherOrder, .empty: "nonCanonicalEncoding"
      case .notFound: "notFound"
      }
    }

    /// What the device records. A refusal is no evidence of anything.
    var securityErrors: [String] { self == .notFound ? [] : [code] }

    /// - Parameter other: The state of another branch.
    func lie(_ other: [UInt8]) -> Lie {
      let (route, entry) = (Routes.zoneState, StateList.entryBytes)
      switch self {
      // In the hash of the first node's record.
      case .flippedBit: return .body("GET", route) { $0[40] ^= 1 }
      case .entryLess: return .body("GET", route) { $0.removeLast(entry) }
      case .entryMore: return .body("GET", route) { $0 += [UInt8](repeating: 0xff, count: entry) }
      case .otherOrder: return .body("GET", route) { $0 = Array($0[entry...]) + Array($0[..<entry]) }
      case .ofAnotherBranch: return .body("GET", route) { $0 = other }
      case .empty: return .body("GET", route) { $0 = [] }
      case .endless: return .endless("GET", route, of: [UInt8](repeating: 0, count: 1_000))
      case .notFound: return .refuse("GET", route, status: 404, code: "notFound")
      }
    }
  }

  /// Two branches of Alice's of the same size, which Bob may read, and a device of Bob's behind a hostile server.
  private struct Stage {
    let alice: TestDevice
    let hostile: HostileServer
    let victim: TestDevice

    /// - Parameter edits: The commits between the split and Bob's access, which comes a year later.
    init(_ world: TestWorld, edits: Int = 0) async throws {
      let people = try await People(world)
      alice = people.alice
      for top in ["/list", "/other"] {
        for path in [top, top + "/a", top + "/b"] { try await alice.create(path, path) }
      }
      try await alice.sync()
      for path in ["/list", "/other"] { try await alice.share(path, with: people.carol) }
      try await alice.sync()
      for number in 0..<edits {
        try await alice.edit("/list/a", "\(number)")
        try await alice.sync()
      }
      if edits > 0 {
        world.clock.advance(by: .seconds(365 * 86_400))
        try await world.server.collect()
      }
      for path in ["/list", "/other"] { try await alice.share(path, with: people.bob) }
      try await alice.sync()
      hostile = HostileServer(world.server)
      victim = try await TestDevice("victim", server: world.server, clock: world.clock, through: hostile)
      try await victim.login(words: try #require(world.words(of: "bob")))
      try await victim.sync()
    }

    /// The state with which a branch began.
    func state(of path: String) async throws -> [UInt8] {
      let root = try await alice.cloudID(path)
      let tree = TreeID.derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID)
      let zone = ZoneID(tree: tree, root: try #require(NodeID(text: root)))
      return try await alice.api.stateList(zone, count: 3)
    }

    /// Expects that a lie is found twice and reported once, that nothing is shown or frozen, and that the honest answer
    /// counts afterwards.
    func expectRefusal(of lie: StateLie) async throws {
      let list = try await alice.cloudID("/list")
      hostile.tell(lie.lie(try await state(of: "/other")))
      _ = victim.recorder.take()
      for _ in 0..<2 {
        let code = await StateLieTests.code { try await victim.accept(list, of: alice) }
        #expect(code == lie.code)
      }
      #expect(hostile.liesTold >= 2)
      #expect(try await victim.securityErrors() == lie.securityErrors)
      #expect(victim.recorder.take().isEmpty)
      #expect(try await victim.branch("detached:/" + list) == nil)
      #expect(try await zones { $0.frozen != nil }.isEmpty)
      hostile.stopTampering()
      try await victim.sync()
      try await victim.download()
      #expect(try await victim.branch("detached:/" + list) == alice.branch("/list"))
      #expect(try await victim.securityErrors() == lie.securityErrors)
      #expect(try await zones { $0.frozen != nil || $0.doubt != nil }.isEmpty)
      try await victim.close()
    }

    private func zones(where isChosen: @escaping @Sendable (ZoneRow) -> Bool) async throws -> [ZoneID] {
      try await victim.database.read { try $0.zones.zones(localUser: 1).filter(isChosen).map(\.zone) }
    }
  }

  private static func code(_ body: () async throws -> Void) async -> String? {
    do {
      try await body()
      return nil
    } catch let error as ServerError where error.code == .notFound {
      return "notFound"
    } catch { return (error as? ZDCSecurityError)?.code.description }
  }

  /// - Bob accepts a list of Alice's, and the server answers with another state than the one that she has signed
  /// => the error says so, and freezes nothing: the signed log does not contain the state
  @Test(arguments: StateLie.allCases) func anotherStateThanTheSignedOne(_ lie: StateLie) async throws {
    try await TestWorld.run { world in try await Stage(world).expectRefusal(of: lie) }
  }

  /// - Bob gets access when the list has many commits, a year after it was split off
  /// => Bob's device verifies the state from before all of them
  @Test(arguments: [StateLie.flippedBit, .entryLess, .ofAnotherBranch])
  func aMemberWhoJoinsAYearLater(_ lie: StateLie) async throws {
    try await TestWorld.run { world in try await Stage(world, edits: Self.yearOfCommits).expectRefusal(of: lie) }
  }
}
