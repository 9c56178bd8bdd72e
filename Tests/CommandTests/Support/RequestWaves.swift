import Foundation
import Synchronization

/// Holds requests until no further one arrives, and then lets all of them pass. Requests that pass together would share
/// a round trip on a high-latency connection. Counts these waves, and the requests in them.
final class RequestWaves: Sendable {
  private struct State {
    var passed = 0
    var requests = 0
    var lastCame = ContinuousClock.now
  }

  /// How long no other request may arrive; longer than a program computes between requests that it sends together.
  private static let quiet: Duration = .milliseconds(200)
  private static let verbs = ["GET ", "POST ", "PUT ", "DELETE "].map { Array($0.utf8) }

  private let state = Mutex(State())

  var count: Int { state.withLock { $0.passed } }
  var requests: Int { state.withLock { $0.requests } }

  /// Blocks its thread until the request's wave passes; returns immediately if the slice does not start a request.
  func wait(with slice: ArraySlice<UInt8>) {
    guard Self.verbs.contains(where: slice.starts(with:)) else { return }
    let wave = state.withLock { state in
      state.lastCame = .now
      state.requests += 1
      return state.passed
    }
    while !state.withLock({ Self.hasPassed(wave, &$0) }) { Thread.sleep(forTimeInterval: 0.01) }
  }

  private static func hasPassed(_ wave: Int, _ state: inout State) -> Bool {
    if state.passed > wave { return true }
    guard ContinuousClock.now - state.lastCame >= quiet else { return false }
    state.passed += 1
    return true
  }
}
