import Testing
import ZDCSupport
import ZeroDarkCloudTesting

/// The clock that tests of the engines step.
@Suite(.timeLimit(.minutes(5))) struct SteppedTimeTests {
  /// The pause is requested on another thread, in many rounds at each point of the wait's start; in fewer rounds if other
  /// tests keep the machine busy, because each round takes several turns.
  @Test func pausesThatAreRequestedAsTheWaitStarts_endIt() async throws {
    let start = ContinuousClock.now
    for round in 1...20_000 where round <= 100 || ContinuousClock.now < start + .seconds(5) {
      let time = SteppedTime()
      async let pause: Void = time.clock.sleep(.seconds(10))
      await time.waitForPauses(1, besides: .seconds(20))
      await time.step()
      try await pause
    }
  }
}
