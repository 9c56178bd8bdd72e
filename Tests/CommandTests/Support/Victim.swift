import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A process that dies at most once, and never after it was waited for: its number may be somebody else's by then.
final class Victim: Sendable {
  private struct State {
    var pid: pid_t?
    var isStruck = false
  }

  private let state = Mutex(State())

  /// - Parameter pid: nil if it is started later, by ``began(_:)``.
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

  /// To be called before its end is waited for by somebody who is sure that it ends.
  func isOver() {
    state.withLock { $0.pid = nil }
  }

  var isStruck: Bool { state.withLock { $0.isStruck } }
}
