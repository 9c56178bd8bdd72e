import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Random histories of two to five people, some with several devices. Each shares folders with the others, with all rights
/// or with restricted ones, who graft them, change what is in them, share them on, leave them and lose access; folders
/// inside shared folders are shared as well, and grafts are put into shared folders. Nodes move between all of these. People
/// write messages, some with an invitation, read, delete and burn them, and block each other. Keys rotate, also because they
/// are compromised, and accounts get new words. Requests lose their answers, and processes end between two transactions.
///
/// => All devices of a person, a new one included, show the same tree and the same messages. Every graft shows what its owner
/// sees, and a person without access has no node of it. Every text is there unless a person deleted it, a merge journal
/// says what replaced it, or its writer lost access before sending it. The access lists are what people asked for, in the
/// order in which the server accepted it. Everything that people asked for had an effect, unless a member who may share
/// lost that right or the access before it was sent: then their device has the reason. The lists decide who has a text,
/// and a person who lost access opens nothing that was written later, with their keys and all of the server's data.
/// Every message arrives once, unless it is burned, deleted or declined, and a burned one is gone. A gap is
/// reported only where a message was declined.
///
/// `ZDC_PEOPLE_HISTORIES` is the number of histories, and `ZDC_SEED` the first seed. A failure names its seed, and
/// `ZDC_PEOPLE_HISTORY` is the only seed to run.
struct PeopleHistoryTests {
  private static let seeds: ClosedRange<UInt64> = {
    if let seed = number("ZDC_PEOPLE_HISTORY") { return seed...seed }
    let first = number("ZDC_SEED") ?? 1
    return first...(first + (number("ZDC_PEOPLE_HISTORIES") ?? 100) - 1)
  }()

  private static func number(_ variable: String) -> UInt64? {
    ProcessInfo.processInfo.environment[variable].flatMap { UInt64($0) }
  }

  @Test(arguments: seeds) func everyoneAgrees(seed: UInt64) async throws {
    try await Self.play(seed)
  }

  private static func play(_ seed: UInt64) async throws {
    let log = HistoryLog()
    do {
      try await TestWorld.run { world in
        var history = try await PeopleHistory(world, seed: seed, log: log)
        try await history.run()
      }
    } catch { throw TestFailure("seed \(seed): \(error)\n\(log.lines.joined(separator: "\n"))") }
  }
}

struct PeopleHistoryCheckTests {
  /// - Alice shares a folder, and a list around it, with Bob and Carol
  /// - Bob grafts the list; Carol grafts the list and the folder, so that the folder is a leaf in her list
  /// => both show what Alice shows
  @Test func twoGuestsMayShowAnInnerBranchInDifferentPlaces() async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for path in ["/list", "/list/inner"] { try await alice.create(path, path) }
      for (path, guest) in [("/list/inner", bob), ("/list/inner", carol), ("/list", bob), ("/list", carol)] {
        try await alice.share(path, with: guest)
        try await alice.sync()
      }
      let (outer, inner) = (try await alice.invite("/list"), try await alice.invite("/list/inner"))
      for guest in [bob, carol] { try await guest.graft("/g1", outer, from: alice) }
      try await carol.graft("/g2", inner, from: alice)
      try await world.settle(alice, bob, carol)
      for guest in [bob, carol] { try await guest.download() }
      #expect(try await !bob.node("/g1/inner").isPointer)
      #expect(try await carol.node("/g1/inner").isPointer)
      try await PeopleHistoryCheck(people: [[alice], [bob], [carol]], model: PeopleModel()).run()
    }
  }
}
