package import ZDCProtocol

/// A user whom a zone's access list names, or named until a commit removed them.
package struct MemberRow: Sendable, Hashable {
  /// Empty for a former member.
  package var permissions: ZoneACL.Permissions
  /// The commit whose list added the user.
  package var joinedSeq: UInt64
  /// When that commit was received.
  package var joinedMs: UInt64
  /// The commit whose list removed the user; nil while they are a member.
  package var leftSeq: UInt64?

  package init(
    permissions: ZoneACL.Permissions, joinedSeq: UInt64, joinedMs: UInt64, leftSeq: UInt64? = nil
  ) {
    self.permissions = permissions
    self.joinedSeq = joinedSeq
    self.joinedMs = joinedMs
    self.leftSeq = leftSeq
  }
}

extension MemberRow {
  /// Returns whether the user was a member when something was replaced at this time. Nil means that it still is in use.
  package func mayRead(replacedMs: UInt64?) -> Bool {
    guard let replacedMs else { return true }
    return joinedSeq == 0 || replacedMs > joinedMs
  }
}

/// The members and former members of a zone.
package struct MemberTable: Sendable, Hashable {
  package private(set) var rows: [UserID: MemberRow] = [:]

  package init() {}

  /// Brings the members in line with the list of a commit.
  ///
  /// - Returns: the users whom the list removes.
  package mutating func change(to entries: [ZoneACL.Entry], seq: UInt64, at receivedMs: UInt64) -> Set<UserID> {
    var gone = Set(rows.filter { $0.value.leftSeq == nil }.keys)
    for entry in entries {
      let known = gone.remove(entry.user).flatMap { rows[$0] }
      var row = known ?? MemberRow(permissions: [], joinedSeq: seq, joinedMs: receivedMs)
      row.permissions = entry.permissions
      rows[entry.user] = row
    }
    for user in gone {
      rows[user]?.permissions = []
      rows[user]?.leftSeq = seq
    }
    return gone
  }
}

/// A zone of another user that a user has accepted.
package struct MembershipRow: Sendable, Hashable {
  package var zone: ZoneID
  package var acceptedMs: UInt64
  /// The commit that removed the user from the access list; nil while the user follows the zone.
  package var endedSeq: UInt64?

  package init(zone: ZoneID, acceptedMs: UInt64, endedSeq: UInt64? = nil) {
    self.zone = zone
    self.acceptedMs = acceptedMs
    self.endedSeq = endedSeq
  }
}

/// How many access lists name a user, and how many users the lists of their own zones name. Each count ends at the limit
/// that was asked for.
package struct MemberCounts: Sendable, Hashable {
  /// Zones that name the user, their own included.
  package var listed: Int
  /// Zones that the user was removed from.
  package var removed: Int
  /// Members of the user's own zones, in all of them together.
  package var members: Int
  package var formerMembers: Int

  package init(listed: Int, removed: Int, members: Int, formerMembers: Int) {
    self.listed = listed
    self.removed = removed
    self.members = members
    self.formerMembers = formerMembers
  }
}

/// The zones in a user's list that have changed.
package struct ZoneChanges: Sendable {
  package var own: [ZoneStatus]
  /// Zones of other users. One whose list no longer names the user has the number and hash of the commit that removed
  /// them.
  package var accepted: [ZoneStatus]
  /// The position up to which the list is complete.
  package var position: FeedPosition

  package init(own: [ZoneStatus], accepted: [ZoneStatus], position: FeedPosition) {
    self.own = own
    self.accepted = accepted
    self.position = position
  }
}

/// A user's newest acceptance or loss of a zone. The number counts the user's own changes. The random mark
/// distinguishes changes with the same number, which a restored server may make.
package struct MembershipMark: Sendable, Hashable {
  package var number: UInt64
  package var mark: UInt64

  package init(number: UInt64, mark: UInt64) {
    (self.number, self.mark) = (number, mark)
  }

  /// Returns a mark that fits a signed 64-bit column.
  package static func randomMark() -> UInt64 { UInt64.random(in: 0...UInt64(Int64.max)) }
}

/// A user's position names the newest commit in their zones, and the newest change of their memberships. A number would
/// reveal how many commits all users make, and would mean a different commit after the server was restored from a
/// backup.
extension FeedPosition {
  /// - Parameter era: the mark of a store that was filled from another one, whose positions it does not know.
  package init(newest commit: ZoneStatus, membership: MembershipMark? = nil, era: UInt64? = nil) {
    let zone = commit.zone
    let suffix = (membership.map { ".\($0.number).\($0.mark)" } ?? "") + (era.map { ".\($0)" } ?? "")
    self.init("\(zone.tree.text).\(zone.root.text).\(commit.seq).\(commit.head.text)\(suffix)")
  }

  /// Four parts for the commit, two for a membership, one for an era.
  private var parts: [Substring]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return 4...7 ~= parts.count ? parts : nil
  }

  /// The commit that the position names; nil if no server of this version issued the position.
  package var commit: ZoneStatus? {
    guard let parts, let tree = TreeID(text: parts[0]), let root = NodeID(text: parts[1]),
      let seq = UInt64(parts[2]), let head = CommitHash(text: parts[3])
    else { return nil }
    return ZoneStatus(zone: ZoneID(tree: tree, root: root), seq: seq, head: head)
  }

  /// The change of memberships that the position names; nil if the user had none.
  package var membership: MembershipMark? {
    guard let parts, parts.count >= 6, let number = UInt64(parts[4]), let mark = UInt64(parts[5]) else { return nil }
    return MembershipMark(number: number, mark: mark)
  }

  /// The mark of the store that issued the position.
  package var era: UInt64? {
    guard let parts, parts.count % 2 == 1 else { return nil }
    return UInt64(parts[parts.count - 1])
  }
}
