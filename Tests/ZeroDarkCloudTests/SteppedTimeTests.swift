import Testing
import ZDCSupport
import ZeroDarkCloudTesting

/// The clock that tests of the engines step.
@Suite(.timeLimit(.minutes(5))) struct SteppedTimeTests {
  /// The pause is requested on another thread, in many rounds at each point of the wait's start.
  @Test func pausesThatAreRequestedAsTheWaitStarts_endIt() async throws {
    for _ in 1...20_000 {
      let time = SteppedTime()
      async let pause: Void = time.clock.sleep(.seconds(10))
      await time.waitForPauses(1, besides: .seconds(20))
      await time.step()
      try await pause
    }
  }
}
