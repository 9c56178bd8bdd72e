import Testing
import ZDCProtocol

@testable import ZeroDarkCloud

/// Trees that fail in the background have pauses of their own.
@Suite struct ZonePausesTests {
  private struct SomeError: Error {}

  @Test func aZoneThatFails_waitsAlone_eachTimeLonger() {
    var pauses = ZonePauses()
    let start = ContinuousClock.now
    #expect(pauses.failed(1, SomeError(), now: start, random: 0.999) == .milliseconds(249))
    #expect(pauses.isPaused(1, now: start) && !pauses.isPaused(2, now: start))
    #expect(pauses.due(now: start) == [])
    let later = start + .milliseconds(249)
    #expect(!pauses.isPaused(1, now: later) && pauses.due(now: later) == [1])
    #expect(pauses.failed(1, SomeError(), now: later, random: 0.999) == .milliseconds(499))
    pauses.succeeded(1)
    #expect(!pauses.isPaused(1, now: later) && pauses.due(now: later + .seconds(9)) == [])
    #expect(pauses.failed(1, SomeError(), now: later, random: 0.999) == .milliseconds(249))
  }

  @Test func whoIsToldToWait_waitsSoLong_andABusyZoneIsNoFailure() {
    var pauses = ZonePauses()
    let busy = ServerError(.zoneBusy, "", retryable: true, retryAfterMs: 250)
    for _ in 0..<5 { #expect(pauses.failed(1, busy, now: .now, random: 0.5) == .milliseconds(300)) }
    let full = ServerError(.storageFull, "", retryable: true, retryAfterMs: 9_000)
    #expect(pauses.failed(2, full, now: .now, random: 0.5) == .seconds(9))
  }

  @Test func aPullThatIsBrokenOff_waitsAMinute_andTheOthersAsBefore() {
    var pauses = ZonePauses()
    let start = ContinuousClock.now
    _ = pauses.failed(1, SomeError(), now: start, random: 0.5)
    #expect(pauses.aborted(2, now: start) == .seconds(60))
    #expect(pauses.due(now: start + .seconds(59)) == [1] && pauses.due(now: start + .seconds(60)) == [1, 2])
    pauses.succeeded(2)
    #expect(!pauses.isEmpty)
    pauses.succeeded(1)
    #expect(pauses.isEmpty)
  }
}
