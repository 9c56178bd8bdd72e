import Foundation
import Synchronization
import Testing
import ZDCTreesystem

@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// Of equal downloads under one tag, exactly one completion runs, whichever caller cancels and when.
@Suite struct CompletionTagTests {
  private static let group = CompletionTags.Group(download: DownloadKey(nodeID: "n", part: .data), tag: "t")

  /// The members of a group, and what happened to their results.
  private final class Members: Sendable {
    private let tags = CompletionTags()
    private let ids: [Int]
    private let lines = Mutex<[String]>([])

    init(_ count: Int) { ids = (0..<count).map { [tags] _ in tags.join(CompletionTagTests.group) } }

    func arrive(_ member: Int) {
      tags.arrive(
        CompletionTagTests.group, ids[member],
        .init(
          deliver: { self.lines.withLock { $0.append("turn \(member)") } },
          drop: { self.lines.withLock { $0.append("drop \(member)") } }))
    }

    func leave(_ member: Int) { tags.leave(CompletionTagTests.group, ids[member]) }
    func takeTurn(_ member: Int) -> Bool { tags.takeTurn(CompletionTagTests.group, ids[member]) }

    func take() -> [String] {
      lines.withLock { lines in
        defer { lines = [] }
        return lines
      }
    }
  }

  @Test func onlyTheFirstMemberReports() {
    let members = Members(4)
    members.arrive(2)
    #expect(members.take() == [])
    members.arrive(0)
    #expect(members.take() == ["turn 0"])
    #expect(members.takeTurn(0))
    #expect(members.take() == ["drop 2"])
    members.arrive(1)
    members.arrive(3)
    #expect(members.take() == ["drop 1", "drop 3"])
    #expect(!members.takeTurn(1))
  }

  /// The other members' results arrive before the first member withdraws.
  @Test func aWaitingMember_reportsWhenTheFirstWithdraws() {
    let members = Members(4)
    members.arrive(1)
    members.arrive(3)
    members.leave(0)
    #expect(members.take() == ["turn 1"])
    // The caller cancels after its turn has come and before its completion runs.
    members.leave(1)
    #expect(!members.takeTurn(1))
    #expect(members.take() == [])
    members.leave(2)
    #expect(members.take() == ["turn 3"])
    #expect(members.takeTurn(3))
  }

  /// The withdrawn member gets its turn, because its block may still have to be called with the cancellation.
  @Test func aWithdrawingMember_isNotifiedImmediately() {
    let members = Members(2)
    members.arrive(1)
    members.leave(1)
    #expect(members.take() == ["turn 1"])
    #expect(!members.takeTurn(1))
    members.arrive(0)
    #expect(members.takeTurn(0))
    #expect(members.take() == ["turn 0"])
  }

  @Test func aMemberThatJoinsAfterTheReport_formsANewGroup() {
    let tags = CompletionTags()
    let first = tags.join(Self.group)
    #expect(tags.takeTurn(Self.group, first))
    let second = tags.join(Self.group)
    #expect(tags.takeTurn(Self.group, second))
  }

  /// Tickets are ignored or cancelled on other threads while their results arrive. One block receives the result,
  /// unless all tickets have withdrawn. A cancelled ticket receives its cancellation, an ignored one nothing.
  @Test(.timeLimit(.minutes(20))) func withdrawalsThatMeetTheResult_leaveExactlyOneWhoHears() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let node = try await Publisher(device).publish([.init(data: pattern(300))])[0]
      let options = ZDCDownloadOptions()
      options.completionConsolidationTag = "cell"
      for round in 0..<20 {
        let heard = Mutex<[Int: Bool]>([:])
        let queue = DispatchQueue(label: "\(round)")
        let tickets = (0..<4).map { member in
          device.downloads.downloadNodeData(node, options: options, completionQueue: queue) { _, file, error in
            if let file { DownloadFolder.remove(file.fileURL) }
            heard.withLock { heard in
              #expect(heard[member] == nil)
              heard[member] = error == nil
            }
          }
        }
        for _ in 0..<round { await Task.yield() }
        if round % 2 == 0 { tickets[0].ignore() } else { tickets[0].cancel() }
        tickets[1].cancel()
        // One of the remaining tickets, or one that withdrew too late.
        while heard.withLock({ !$0.values.contains(true) }) { await Task.yield() }
        _ = try await device.downloads.downloadNodeData(node)
        queue.sync {}
        // A cancelled ticket may already have received its file, in addition to the one that delivers the result.
        let told = heard.withLock { $0 }
        #expect(told[2] == nil || told[3] == nil, "\(round): \(told)")
      }
    }
  }
}
