package import Foundation
internal import Synchronization

/// A `Progress` that follows a ``SteadyProgress``. Created on demand, because most work is small.
package final class ProgressMeter: Sendable {
  private let steady: Mutex<SteadyProgress>
  private let made = Mutex<Progress?>(nil)

  package init() {
    steady = Mutex(SteadyProgress())
  }

  /// The `Progress`; the same object each time.
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

  /// Whether a caller has requested the `Progress`.
  var isShown: Bool { made.withLock { $0 != nil } }

  package var fraction: Double { steady.withLock { $0.fraction } }

  package func report(_ done: UInt64, of total: UInt64) {
    change { $0.report(done, of: total) }
  }

  package func finish() {
    change { $0.finish() }
  }

  /// Sets the `Progress` inside the lock: two reports that overtake each other would let it run backwards.
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

  /// `isCancelled`, for work that another thread may cancel.
  var isToStop: Bool {
    #if canImport(Darwin)
      return isCancelled
    #else
      return (self as? LockedProgress)?.wasCancelled ?? isCancelled
    #endif
  }

  /// Returns a `Progress` that may be read while it is being set.
  static func steady() -> Progress {
    #if canImport(Darwin)
      return Progress(totalUnitCount: -1)
    #else
      return LockedProgress()
    #endif
  }
}
