internal import NIOCore
internal import Synchronization
internal import ZDCProtocol

/// A bounded queue of events for one stream. When it is full, the server closes the connection, and the reader
/// reconnects.
final class Mailbox: Sendable {
  struct Frame: Sendable {
    /// Nil for a heartbeat.
    var head: ZoneStatus?
    /// Shared by all streams that get the frame.
    var bytes: ByteBuffer
  }

  private struct State {
    var frames: [Frame] = []
    var pendingBytes = 0
    var waiter: CheckedContinuation<Frame?, Never>?
    var isClosed = false
    var onOverflow: (@Sendable () -> Void)?
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) {
    self.limit = limit
  }

  /// Sets the action to call when a frame does not fit. The stream's task may then be suspended in a write, which only
  /// closing the connection can end.
  func onOverflow(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.onOverflow = action } }

  /// Delivers a frame, or closes the mailbox if there is no room.
  func offer(_ frame: Frame) {
    let action = state.withLock { state -> (@Sendable () -> Void)? in
      guard !state.isClosed else { return nil }
      if let waiter = state.waiter {
        state.waiter = nil
        return { waiter.resume(returning: frame) }
      }
      guard state.pendingBytes + frame.bytes.readableBytes <= limit else {
        state.isClosed = true
        state.frames = []
        return state.onOverflow
      }
      state.frames.append(frame)
      state.pendingBytes += frame.bytes.readableBytes
      return nil
    }
    action?()
  }

  /// Returns the next frame; nil when the mailbox is closed or the task is cancelled. Supports only one reader.
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
          state.pendingBytes -= frame.bytes.readableBytes
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
