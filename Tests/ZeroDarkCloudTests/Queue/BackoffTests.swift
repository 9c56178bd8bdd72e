import Testing

@testable import ZeroDarkCloud

@Suite struct BackoffTests {
  @Test func failures_doubleTheCeiling_aTurnDoesNot() {
    var backoff = Backoff()
    #expect((0..<4).map { _ in backoff.next(random: 0.999_999) } == [249, 499, 999, 1_999])
    #expect(backoff.next(random: 0, atLeast: 7_000) == 7_000)
    #expect((0..<4).map { _ in Backoff.turn(atLeast: 250, random: 0.5) } == [300, 300, 300, 300])
  }
}
