internal import Foundation
internal import Synchronization

#if !canImport(Darwin)
  /// A `Progress` that another thread may read while it is being set.
  ///
  /// NB: swift-corelibs-foundation's `Progress` is not synchronized: reading it while another thread sets it is a race.
  ///
  /// This class keeps its numbers and its cancellation flag behind a lock. Under the same lock it passes the numbers to
  /// the superclass, for a parent that an app may have added it to. It has no other state, hence unchecked.
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

    /// The superclass calls the handler and notifies the children.
    override func cancel() {
      stopped.withLock { $0 = true }
      super.cancel()
    }

    /// `isCancelled` cannot be overridden.
    var wasCancelled: Bool { stopped.withLock { $0 } }

    override var isFinished: Bool { units.withLock { $0.total > 0 && $0.completed >= $0.total } }

    override var isIndeterminate: Bool { units.withLock { $0.total < 0 } }
  }
#endif
