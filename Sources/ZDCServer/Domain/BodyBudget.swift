internal import Synchronization
internal import ZDCProtocol

/// A limit on the bytes of bodies in memory: of all requests, of one user or address, and of all senders without a
/// session together. Each route limits single bodies.
///
/// Senders without a session get a quarter, so that users can always send.
final class BodyBudget: Sendable {
  enum Party: Hashable, Sendable {
    case user(UserID)
    /// A sender without a session, by address.
    case stranger(String)

    var isStranger: Bool { if case .stranger = self { true } else { false } }
  }

  private struct State {
    var taken = 0
    var takenByStrangers = 0
    var byParty: [Party: Int] = [:]
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) {
    self.limit = limit
  }

  static func partyLimit(of limit: Int) -> Int { limit / 8 }
  static func strangersLimit(of limit: Int) -> Int { limit / 4 }

  var bytes: Int { state.withLock { $0.taken } }

  fileprivate func take(_ count: Int, by party: Party) -> Bool {
    state.withLock { state in
      let own = state.byParty[party, default: 0] + count
      let strangers = state.takenByStrangers + (party.isStranger ? count : 0)
      let fits =
        state.taken + count <= limit && own <= Self.partyLimit(of: limit)
        && (!party.isStranger || strangers <= Self.strangersLimit(of: limit))
      guard fits else { return false }
      state.taken += count
      state.takenByStrangers = strangers
      state.byParty[party] = own
      return true
    }
  }

  fileprivate func giveBack(_ count: Int, by party: Party) {
    guard count > 0 else { return }
    state.withLock { state in
      state.taken -= count
      if party.isStranger { state.takenByStrangers -= count }
      let own = state.byParty[party, default: 0] - count
      state.byParty[party] = own > 0 ? own : nil
    }
  }
}

/// One request's share, returned when the request ends.
final class BodyShare: Sendable {
  private let budget: BodyBudget
  private let party: BodyBudget.Party
  private let taken = Mutex(0)

  init(_ budget: BodyBudget, of party: BodyBudget.Party) {
    self.budget = budget
    self.party = party
  }

  deinit { budget.giveBack(taken.withLock { $0 }, by: party) }

  /// - Throws: `tooManyRequests` if there is no room.
  func take(_ count: Int) throws {
    guard budget.take(count, by: party) else {
      throw ServerError(
        .tooManyRequests, "too many bytes are being transferred", retryable: true, retryAfterMs: 1_000)
    }
    taken.withLock { $0 += count }
  }
}
