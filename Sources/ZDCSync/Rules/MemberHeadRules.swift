package import ZDCProtocol

/// The meaning of a head that a member names in a message (PROTOCOL 3.11, "Heads"). Pure.
package enum MemberHeadRules {
  package enum Verdict: Equatable {
    /// The verified log contains the commit, or no longer knows its hash at that number.
    case consistent
    /// The verified log has another commit with that number.
    case fork
    /// The verified log ends before that number.
    case ahead
  }

  /// - Parameters:
  ///   - pinned: The number of the verified log's last commit; nil before the first pull.
  ///   - known: The verified commit with the named number, or nil if it is not known.
  package static func verdict(
    on named: (seq: UInt64, hash: CommitHash), pinned: UInt64?, known: CommitHash?
  ) -> Verdict {
    guard let pinned, named.seq <= pinned else { return .ahead }
    guard let known else { return .consistent }
    return known == named.hash ? .consistent : .fork
  }

  /// Returns whether a member's word about a zone counts. A user who never was a member can only be one whom a commit
  /// beyond the log has added.
  package static func isHeard(isMember: Bool, wasMember: Bool, _ verdict: Verdict) -> Bool {
    isMember || wasMember || verdict == .ahead
  }

  /// A zone whose head may be named to a recipient.
  package struct Candidate: Equatable {
    package var zone: Int64
    /// The number of the last message to the recipient that named a head of the zone; nil if none did.
    package var lastNamed: UInt64?

    package init(zone: Int64, lastNamed: UInt64?) { (self.zone, self.lastNamed) = (zone, lastNamed) }
  }

  /// Returns the zones that the next message names: those that were not named for the longest time. The others follow
  /// with later messages.
  package static func choose(_ candidates: [Candidate]) -> [Candidate] {
    let order = candidates.sorted { ($0.lastNamed ?? 0, $0.zone) < ($1.lastNamed ?? 0, $1.zone) }
    return Array(order.prefix(Limits.messageHeads))
  }
}
