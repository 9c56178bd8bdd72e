internal import Synchronization

/// Who speaks for a group of equal downloads under one tag: the first who still wants it, and nobody else.
final class CompletionTags: Sendable {
  struct Group: Hashable, Sendable {
    var download: DownloadKey
    var tag: String
  }

  private struct State {
    var next = 0
    var members: [Group: [Int]] = [:]

    mutating func remove(_ member: Int, from group: Group) {
      members[group]?.removeAll { $0 == member }
      if members[group]?.isEmpty == true { members[group] = nil }
    }
  }

  private let state = Mutex(State())

  func join(_ group: Group) -> Int {
    state.withLock { state in
      state.next += 1
      state.members[group, default: []].append(state.next)
      return state.next
    }
  }

  func leave(_ group: Group, _ member: Int) {
    state.withLock { $0.remove(member, from: group) }
  }

  /// To be called with a member's result. Once somebody has spoken, nobody who was there then does.
  func speaks(_ group: Group, _ member: Int) -> Bool {
    state.withLock { state in
      guard let members = state.members[group], members.contains(member) else { return false }
      guard members.first == member else {
        state.remove(member, from: group)
        return false
      }
      state.members[group] = nil
      return true
    }
  }
}
