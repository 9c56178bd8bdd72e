package import Foundation
internal import Synchronization

/// A `Progress` that follows a ``SteadyProgress``. Made when somebody asks for it: most work is small.
package final class ProgressMeter: Sendable {
  private let steady: Mutex<SteadyProgress>
  private let made = Mutex<Progress?>(nil)

  package init() {
    steady = Mutex(SteadyProgress())
  }

  /// The same object each time.
  package var progress: Progress {
    if let known = made.withLock({ $0 }) { return known }
    return steady.withLock { steady in
      made.withLock { made in
        if let made { return made }
        let progress = Progress.steady()
        progress.show(steady)
        made = progress
        return progress
      }
    }
  }

  /// Whether somebody holds the `Progress`, or has.
  var isShown: Bool { made.withLock { $0 != nil } }

  package var fraction: Double { steady.withLock { $0.fraction } }

  package func report(_ done: UInt64, of total: UInt64) {
    change { $0.report(done, of: total) }
  }

  package func finish() {
    change { $0.finish() }
  }

  /// The `Progress` is set inside the lock: two reports that overtake each other would let it run backwards.
  private func change(_ body: (inout SteadyProgress) -> Void) {
    steady.withLock { steady in
      body(&steady)
      made.withLock { $0 }?.show(steady)
    }
  }
}

extension Progress {
  fileprivate func show(_ steady: SteadyProgress) {
    if totalUnitCount != steady.total { totalUnitCount = steady.total }
    completedUnitCount = steady.completed
  }

  /// `isCancelled`, for whoever does the work while others may cancel it.
  var isToStop: Bool {
    #if canImport(Darwin)
      return isCancelled
    #else
      return (self as? LockedProgress)?.wasCancelled ?? isCancelled
    #endif
  }

  /// One that may be read while it is set.
  static func steady() -> Progress {
    #if canImport(Darwin)
      return Progress(totalUnitCount: -1)
    #else
      return LockedProgress()
    #endif
  }
}
