internal import Synchronization
internal import ZDCProtocol

/// Who works on a blob's files now. Two requests that write one part would mix their bytes, and a removal must not take
/// the file from under a part that is about to be acknowledged.
final class BlobClaims: Sendable {
  private struct State {
    var parts: Set<String> = []
    var writers: [BlobID: Int] = [:]
    var removals: Set<BlobID> = []
  }

  private let state = Mutex(State())

  func begin(part: String, of blob: BlobID) -> Bool {
    state.withLock { state in
      guard !state.removals.contains(blob), state.parts.insert(part).inserted else { return false }
      state.writers[blob, default: 0] += 1
      return true
    }
  }

  func end(part: String, of blob: BlobID) {
    state.withLock { state in
      state.parts.remove(part)
      let writers = (state.writers[blob] ?? 1) - 1
      state.writers[blob] = writers > 0 ? writers : nil
    }
  }

  /// False while a part is being written: the removal is for later.
  func beginRemoval(of blob: BlobID) -> Bool {
    state.withLock { state in state.writers[blob] == nil && state.removals.insert(blob).inserted }
  }

  func endRemoval(of blob: BlobID) { state.withLock { _ = $0.removals.remove(blob) } }
}
