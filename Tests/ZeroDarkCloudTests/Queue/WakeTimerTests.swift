import Testing
import ZDCSupport

@testable import ZDCSync

/// A wakeup of the engine concerns everything, or the queues of some zones.
@Suite("Wakeups") struct WakeTimerTests {
  private let wake = WakeTimer(time: EngineClock())

  @Test func theFirstWakeupIsForEverything() {
    #expect(wake.takeDue() == .everything)
    #expect(wake.takeDue() == .queues([]))
  }

  @Test func queuesAreCollectedUntilTheyAreTaken() {
    _ = wake.takeDue()
    wake.signal(queueOf: 1)
    wake.signal(queueOf: 2)
    wake.signal(queueOf: 1)
    #expect(wake.takeDue() == .queues([1, 2]))
    #expect(wake.takeDue() == .queues([]))
  }

  @Test func aWakeupForEverythingCoversQueuesBeforeAndAfterIt() {
    _ = wake.takeDue()
    wake.signal(queueOf: 1)
    wake.signal()
    wake.signal(queueOf: 2)
    #expect(wake.takeDue() == .everything)
  }

  @Test func theEndOfAPauseIsForEverything() {
    _ = wake.takeDue()
    wake.signal(after: .zero)
    #expect(wake.takeDue() == .everything)
  }
}
