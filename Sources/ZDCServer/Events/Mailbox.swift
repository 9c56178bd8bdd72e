internal import Synchronization

/// One line of events to one reader, bounded: a reader that is too slow is cut off and comes back with his cursor.
final class Mailbox: Sendable {
  struct Frame: Sendable {
    /// Nil for a heartbeat.
    var feedPosition: UInt64?
    var bytes: [UInt8]
  }

  private struct State {
    var frames: [Frame] = []
    var pendingBytes = 0
    var waiter: CheckedContinuation<Frame?, Never>?
    var isClosed = false
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) {
    self.limit = limit
  }

  /// Hands a frame over, or closes the mailbox if there is no room.
  func offer(_ frame: Frame) {
    let waiter = state.withLock { state -> CheckedContinuation<Frame?, Never>? in
      guard !state.isClosed else { return nil }
      if let waiter = state.waiter {
        state.waiter = nil
        return waiter
      }
      guard state.pendingBytes + frame.bytes.count <= limit else {
        state.isClosed = true
        state.frames = []
        return nil
      }
      state.frames.append(frame)
      state.pendingBytes += frame.bytes.count
      return nil
    }
    waiter?.resume(returning: frame)
  }

  /// The next frame; nil when the mailbox is closed or the task cancelled. One reader only.
  func next() async -> Frame? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let ready = state.withLock { state -> Frame?? in
          if state.isClosed { return .some(nil) }
          guard !state.frames.isEmpty else {
            state.waiter = continuation
            return nil
          }
          let frame = state.frames.removeFirst()
          state.pendingBytes -= frame.bytes.count
          return frame
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      close()
    }
  }

  func close() {
    let waiter = state.withLock { state in
      state.isClosed = true
      state.frames = []
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: nil)
  }
}
