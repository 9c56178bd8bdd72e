import Testing

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The pauses between rounds that take messages over.
struct MessagePauseTests {
  private struct SomeError: Error {}
  private let start = ContinuousClock.now

  /// => the first round without a message costs no pause, each further one does, until there is a message again
  @Test func roundsWithoutMessages_pause() {
    var pause = MessagePause()
    pause.roundEnded(commits: 0, now: start)
    #expect(pause.rest(start) == nil)
    for second in [0, 5, 10] {
      let now = start + .seconds(second)
      pause.roundEnded(commits: 0, now: now)
      #expect(pause.rest(now) == .seconds(5))
      #expect(pause.rest(now + .seconds(4)) == .seconds(1))
      #expect(pause.rest(now + .seconds(5)) == nil)
    }
    pause.roundEnded(commits: 1, now: start)
    #expect(pause.rest(start) == nil)
    pause.roundEnded(commits: 0, now: start)
    #expect(pause.rest(start) == nil)
  }

  @Test func failedRounds_pauseLongerAndLonger_untilOneSucceeds() {
    var pause = MessagePause()
    for length in [249, 499, 999] {
      #expect(pause.begin(after: SomeError(), now: start, random: 0.999) == .milliseconds(length))
      #expect(pause.rest(start) == .milliseconds(length))
    }
    pause.roundEnded(commits: 1, now: start)
    #expect(pause.rest(start) == nil)
    #expect(pause.begin(after: SomeError(), now: start, random: 0.999) == .milliseconds(249))
  }
}
