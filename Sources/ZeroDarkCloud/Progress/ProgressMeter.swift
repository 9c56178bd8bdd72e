internal import Foundation
internal import Synchronization

/// A `Progress` that follows a ``SteadyProgress``. Made when somebody asks for it: most work is small.
final class ProgressMeter: Sendable {
  private let steady: Mutex<SteadyProgress>
  private let made = Mutex<Progress?>(nil)

  init() {
    steady = Mutex(SteadyProgress())
  }

  /// The same object each time.
  var progress: Progress {
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

  var fraction: Double { steady.withLock { $0.fraction } }

  func report(_ done: UInt64, of total: UInt64) {
    change { $0.report(done, of: total) }
  }

  func finish() {
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

#if !canImport(Darwin)
  /// NB: swift-corelibs-foundation's `Progress` guards nothing: reading it while another thread sets it is a race.
  ///
  /// Its own numbers, and whether it was cancelled, are kept behind a lock here. The numbers are given to the superclass,
  /// under the same lock, for a parent that an app may have added it to. That is all state there is, hence unchecked.
  /// `fractionCompleted` cannot be overridden: it reads the superclass's numbers, of which only one changes once the
  /// total is known.
  final class LockedProgress: Progress, @unchecked Sendable {
    private let units = Mutex<(total: Int64, completed: Int64)>((-1, 0))
    private let stopped = Mutex(false)

    init() {
      super.init(parent: nil, userInfo: nil)
      totalUnitCount = -1
    }

    override var totalUnitCount: Int64 {
      get { units.withLock { $0.total } }
      set {
        units.withLock { units in
          units.total = newValue
          super.totalUnitCount = newValue
        }
      }
    }

    override var completedUnitCount: Int64 {
      get { units.withLock { $0.completed } }
      set {
        units.withLock { units in
          units.completed = newValue
          super.completedUnitCount = newValue
        }
      }
    }

    /// The superclass calls the handler, and tells the children.
    override func cancel() {
      stopped.withLock { $0 = true }
      super.cancel()
    }

    /// `isCancelled` cannot be overridden.
    fileprivate var wasCancelled: Bool { stopped.withLock { $0 } }

    override var isFinished: Bool { units.withLock { $0.total > 0 && $0.completed >= $0.total } }

    override var isIndeterminate: Bool { units.withLock { $0.total < 0 } }
  }
#endif
