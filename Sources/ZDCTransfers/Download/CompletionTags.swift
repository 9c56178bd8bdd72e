internal import Synchronization

/// Who speaks for a group of equal downloads under one tag: the first who still wants it, and nobody else.
///
/// Results come in any order. Who has his and is not the first waits for those before him: they may yet withdraw.
package final class CompletionTags: Sendable {
  package struct Group: Hashable, Sendable {
    package var download: DownloadKey
    package var tag: String
  }

  /// What becomes of a result. One of the two is called, once.
  package struct Outcome: Sendable {
    /// It is this member's turn, or he has left: to be decided by ``takeTurn(_:_:)`` when he is about to speak.
    package var deliver: @Sendable () -> Void
    /// Somebody else has spoken.
    package var drop: @Sendable () -> Void
  }

  private struct Member {
    var id: Int
    var outcome: Outcome?
  }

  private struct State {
    var next = 0
    var members: [Group: [Member]] = [:]

    /// The outcome of the one who has become the first, if it is there.
    mutating func remove(_ member: Int, from group: Group) -> [Outcome] {
      guard let index = members[group]?.firstIndex(where: { $0.id == member }) else { return [] }
      let left = members[group]?.remove(at: index).outcome
      let next = index == 0 ? members[group]?.first?.outcome : nil
      if members[group]?.isEmpty == true { members[group] = nil }
      // The first one's was handed over when it came.
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

  /// A member's result is there.
  package func arrive(_ group: Group, _ member: Int, _ outcome: Outcome) {
    let call = state.withLock { state -> (@Sendable () -> Void)? in
      guard let index = state.members[group]?.firstIndex(where: { $0.id == member }) else { return outcome.drop }
      state.members[group]?[index].outcome = outcome
      return index == 0 ? outcome.deliver : nil
    }
    call?()
  }

  /// Who leaves does not speak for others.
  package func leave(_ group: Group, _ member: Int) {
    for outcome in state.withLock({ $0.remove(member, from: group) }) { outcome.deliver() }
  }

  /// To be called by the first one when he is about to speak. Once somebody has, nobody who was there then does.
  ///
  /// - Returns: false if he has left.
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
