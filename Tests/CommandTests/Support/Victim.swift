import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A process that is killed at most once, and never after it was waited for: its ID may belong to another process by
/// then.
final class Victim: Sendable {
  private struct State {
    var pid: pid_t?
    var isStruck = false
  }

  private let state = Mutex(State())

  /// - Parameter pid: nil if ``began(_:)`` sets it later.
  init(_ pid: pid_t? = nil) {
    state.withLock { $0.pid = pid }
  }

  func began(_ pid: pid_t) {
    state.withLock { state in
      state.pid = pid
      if state.isStruck { kill(pid, SIGKILL) }
    }
  }

  func strike() {
    state.withLock { state in
      state.isStruck = true
      if let pid = state.pid { kill(pid, SIGKILL) }
    }
  }

  /// Must be called before the process is reaped, once it is certain to have ended.
  func isOver() {
    state.withLock { $0.pid = nil }
  }

  var isStruck: Bool { state.withLock { $0.isStruck } }
}
