internal import Foundation
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Handles SIGINT and SIGTERM: the first one cancels the command, which then cleans up; the second one ends the
/// process.
///
/// The handlers write to a pipe, so that no signal is lost, whichever thread receives it.
package enum Interruption {
  private static let signals = Pipe()
  private static let wake = Pipe()

  /// Readable after the first signal. Reads from a terminal or a pipe also wait for it.
  static var descriptor: Int32 { wake.reader }

  /// - Parameter cancel: Called once, on the first signal.
  package static func begin(_ cancel: @escaping @Sendable () -> Void) {
    // Creates the pipes before a handler can run. Without them, a signal ends the process immediately.
    guard signals.reader >= 0, wake.reader >= 0 else { return }
    Thread.detachNewThread {
      guard signals.read() else { return }
      for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
      wake.write()
      cancel()
    }
    for number in [SIGINT, SIGTERM] { signal(number) { _ in Interruption.signals.write() } }
  }

  private struct Pipe: Sendable {
    let reader: Int32
    let writer: Int32

    init() {
      var ends: [Int32] = [-1, -1]
      if pipe(&ends) == 0 {
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      }
      (reader, writer) = (ends[0], ends[1])
    }

    /// Safe in a signal handler.
    func write() {
      let number = errno
      var byte: UInt8 = 1
      _ = Foundation.write(writer, &byte, 1)
      errno = number
    }

    /// Waits for a byte; returns false if none can arrive.
    func read() -> Bool {
      var byte: UInt8 = 0
      while true {
        let count = Foundation.read(reader, &byte, 1)
        if count < 0 && errno == EINTR { continue }
        return count == 1
      }
    }
  }
}
