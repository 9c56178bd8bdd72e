import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer

/// Calls of one user or address wait for each other, and not for those of others.
@Suite struct PartyTurnsTests {
  private final class Order: Sendable {
    private let numbers = Mutex<[Int]>([])
    var all: [Int] { numbers.withLock { $0 } }
    func add(_ number: Int) { numbers.withLock { $0.append(number) } }
  }

  private let ann = BodyBudget.Party.user(UserID([UInt8](repeating: 1, count: 32))!)
  private let stranger = BodyBudget.Party.stranger("192.0.2.1")

  /// - Ann sends a hundred calls, two of which may run
  /// - one of the two ends
  /// => the others wait until then, a stranger's runs at once, and Ann's run in the order in which they came
  @Test func onePartysCalls_waitForEachOther() async {
    let turns = PartyTurns(limit: 2)
    let (long, endLong) = AsyncStream<Void>.makeStream()
    let (short, endShort) = AsyncStream<Void>.makeStream()
    let (order, ann) = (Order(), ann)
    await withTaskGroup(of: Void.self) { group in
      for gate in [long, short] { group.addTask { await turns.run(ann) { for await _ in gate {} } } }
      while turns.running(ann) < 2 { await Task.yield() }
      for number in 0..<98 {
        group.addTask { await turns.run(ann) { order.add(number) } }
        while turns.waiting <= number { await Task.yield() }
      }
      await turns.run(stranger) { #expect(order.all.isEmpty) }
      // All others share one slot. With two, two calls would run at once, in any order.
      endShort.finish()
      while order.all.count < 98 { await Task.yield() }
      #expect(turns.waiting == 0)
      endLong.finish()
    }
    #expect(order.all == Array(0..<98))
    #expect(turns.running(ann) == 0)
  }

  @Test func aCallThatFails_leavesItsPlace() async {
    struct Failed: Error {}
    let turns = PartyTurns(limit: 1)
    for _ in 0..<3 {
      await #expect(throws: Failed.self) { try await turns.run(ann) { throw Failed() } }
    }
    #expect(turns.running(ann) == 0)
  }
}
