internal import Synchronization

/// Draws a progress line on a terminal, at most ten times a second, and removes it at the end.
package final class ProgressDisplay: Sendable {
  private struct State {
    var line: ProgressLine
    var lastDrawn: ContinuousClock.Instant?
    var isVisible = false
  }

  private let state: Mutex<State>
  private let isEnabled: Bool
  private let start = ContinuousClock.now
  private static let interval: Duration = .milliseconds(100)

  /// - Parameter isEnabled: False without a terminal, and with `--json` or `--quiet`.
  package init(_ line: ProgressLine, isEnabled: Bool) {
    state = Mutex(State(line: line))
    self.isEnabled = isEnabled
  }

  package func update(_ change: (inout ProgressLine) -> Void) {
    state.withLock { state in
      change(&state.line)
      guard isEnabled else { return }
      let now = ContinuousClock.now
      if let last = state.lastDrawn, now - last < Self.interval { return }
      state.lastDrawn = now
      state.isVisible = true
      let text = state.line.text(seconds: Self.seconds(now - start), width: Terminal.width - 1)
      Terminal.writeError("\r\u{1B}[2K\(text)")
    }
  }

  /// Removes the line.
  package func finish() {
    state.withLock { state in
      guard state.isVisible else { return }
      state.isVisible = false
      Terminal.writeError("\r\u{1B}[2K")
    }
  }

  private static func seconds(_ duration: Duration) -> Double {
    let parts = duration.components
    return Double(parts.seconds) + Double(parts.attoseconds) / 1e18
  }
}
