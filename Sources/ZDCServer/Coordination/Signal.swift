internal import Synchronization

/// An event that happens once and that one task waits for.
package final class Signal: Sendable {
  private struct State {
    var isOpen = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  package func open() {
    let waiter = state.withLock { state in
      state.isOpen = true
      return state.waiter.take()
    }
    waiter?.resume()
  }

  package func wait(upTo time: Duration) async {
    let timer = Task {
      // Cancelled once the signal is open.
      do { try await Task.sleep(for: time) } catch { return }
      open()
    }
    defer { timer.cancel() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let isOpen = state.withLock { state in
          if !state.isOpen { state.waiter = waiter }
          return state.isOpen
        }
        if isOpen { waiter.resume() }
      }
    } onCancel: {
      open()
    }
  }
}
