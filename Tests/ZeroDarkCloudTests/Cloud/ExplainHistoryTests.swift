import Foundation
import GRDB
import Testing

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// The stored outcomes of attempts to send an operation.
@Suite struct ExplainHistoryTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  /// Returns the history of the queue's first operation, each entry as `outcome code times`.
  private func history() async throws -> [String] {
    try await device.read { cloud in
      try #require(cloud.explainQueue().first).history.map { "\($0.outcome) \($0.code ?? "-") \($0.times)" }
    }
  }

  private func record(_ outcome: ZDCAttempt.Outcome, _ code: String?, times: Int = 1) async throws {
    try await device.write { cloud in
      let first = try #require(try cloud.queue().first)
      for _ in 0..<times { try cloud.transaction.attempts.record(outcome, code: code, of: [first.id]) }
    }
  }

  @Test func newOperation_hasNoHistory() async throws {
    try await device.create("/a")
    #expect(try await history() == [])
  }

  @Test func sameOutcomeInARow_isOneEntry_withItsFirstAndItsLastTime() async throws {
    try await device.create("/a")
    try await record(.noAnswer, "cut", times: 3)
    try await record(.serverSaid, "zoneBusy")
    try await record(.noAnswer, "cut")
    #expect(try await history() == ["noAnswer cut 3", "serverSaid zoneBusy 1", "noAnswer cut 1"])
    try await device.read { cloud in
      let explained = try #require(cloud.explainQueue().first)
      #expect(explained.attempts == 5)
      #expect(explained.history[0].firstDate <= explained.history[0].date)
      #expect(explained.history[0].date < explained.history[2].date)
    }
  }

  @Test func onlyTheLastOutcomesAreKept() async throws {
    try await device.create("/a")
    for number in 0..<50 { try await record(.serverSaid, "\(number)") }
    let kept = try await history()
    #expect(kept.count == AttemptStore.limit && AttemptStore.limit == 20)
    #expect(kept.first == "serverSaid 30 1" && kept.last == "serverSaid 49 1")
  }

  @Test func historyGoesWithItsOperation() async throws {
    try await device.create("/a")
    try await record(.noDataFromApp, "AppError")
    try await device.pretendAllPushed()
    let left = try await device.zdc.rw.read { transaction in
      try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_attempt")
    }
    #expect(left == 0)
    // Recording an attempt of an operation that no longer exists does nothing.
    try await device.write { try $0.transaction.attempts.record(.noAnswer, code: nil, of: [1]) }
  }

  @Test func cancelledTask_isNoTry() {
    #expect(ZDCAttempt.outcome(of: CancellationError(), orElse: .appFailed) == nil)
  }
}
