internal import Synchronization

/// Decides which completion is called in a group of equal downloads under one tag: only that of the first member that
/// still wants it.
///
/// Results arrive in any order. A member that has its result but is not the first waits for those before it, because
/// they may still withdraw.
package final class CompletionTags: Sendable {
  package struct Group: Hashable, Sendable {
    package var download: DownloadKey
    package var tag: String
  }

  /// The two handlers of a result. Only one of them is called, once.
  package struct Outcome: Sendable {
    /// Called when it is the member's turn, or when it has left. Immediately before calling its completion, the member
    /// must check with ``takeTurn(_:_:)``.
    package var deliver: @Sendable () -> Void
    /// Called when the completion of another member has been called.
    package var drop: @Sendable () -> Void
  }

  private struct Member {
    var id: Int
    var outcome: Outcome?
  }

  private struct State {
    var next = 0
    var members: [Group: [Member]] = [:]

    /// Removes a member. Returns its outcome and that of the member that is now the first, if they must be delivered.
    mutating func remove(_ member: Int, from group: Group) -> [Outcome] {
      guard let index = members[group]?.firstIndex(where: { $0.id == member }) else { return [] }
      let left = members[group]?.remove(at: index).outcome
      let next = index == 0 ? members[group]?.first?.outcome : nil
      if members[group]?.isEmpty == true { members[group] = nil }
      // The first member's own outcome was handed over when it arrived.
      return [index == 0 ? nil : left, next].compactMap(\.self)
    }
  }

  private let state = Mutex(State())

  package func join(_ group: Group) -> Int {
    state.withLock { state in
      state.next += 1
      state.members[group, default: []].append(Member(id: state.next))
      return state.next
    }
  }

  /// Records that a member's result has arrived.
  package func arrive(_ group: Group, _ member: Int, _ outcome: Outcome) {
    let call = state.withLock { state -> (@Sendable () -> Void)? in
      guard let index = state.members[group]?.firstIndex(where: { $0.id == member }) else { return outcome.drop }
      state.members[group]?[index].outcome = outcome
      return index == 0 ? outcome.deliver : nil
    }
    call?()
  }

  /// Removes a member from the group. It no longer holds up the others.
  package func leave(_ group: Group, _ member: Int) {
    for outcome in state.withLock({ $0.remove(member, from: group) }) { outcome.deliver() }
  }

  /// Claims the group's one completion call for its first member. The member calls this immediately before its
  /// completion. The results of all other current members are dropped.
  ///
  /// - Returns: false if the member has left.
  package func takeTurn(_ group: Group, _ member: Int) -> Bool {
    let others = state.withLock { state -> [Member]? in
      guard let members = state.members[group], members.first?.id == member else { return nil }
      state.members[group] = nil
      return Array(members.dropFirst())
    }
    for other in others ?? [] { other.outcome?.drop() }
    return others != nil
  }
}
