package import ZDCProtocol

/// A new head, for the event stream: its status, the users who may be notified, and the commit's page.
///
/// The page is the same for all of them. A commit with an access list has none, because each member has another grant.
package struct HeadNotice: Sendable, Codable {
  package let status: ZoneStatus
  package let owner: UserID
  /// Members whom the commit removes. This notice is the last one that they get.
  package let removed: Set<UserID>
  /// Whether the list before or after the commit names members other than the owner.
  package let hasMembers: Bool
  /// The commit and its records; nil if that is too long. Not part of the encoded form.
  package var page: [UInt8]?
  /// Nil for a decoded notice, which may then concern any user.
  private var acl: ZoneACL.Fields?

  private enum CodingKeys: CodingKey { case status, owner, removed, hasMembers }

  init(status: ZoneStatus, part: CommitRequest.ZonePart, delta: ZoneDelta) {
    self.status = status
    let acl = delta.head.acl.fields
    self.acl = acl
    owner = acl.owner
    removed = delta.list?.removed ?? []
    hasMembers = acl.entries.count > 1 || !removed.isEmpty
    let hasList = part.acl != nil
    page = hasList ? nil : Self.page(part.commit, stored: delta.puts.map(\.record), receivedMs: delta.receivedMs)
  }

  /// Returns whether the list before or after the commit may name this user, and they are not the owner.
  package func concerns(_ user: UserID) -> Bool {
    guard user != owner, let acl else { return user != owner }
    return removed.contains(user) || acl.entry(for: user) != nil
  }

  private static func page(_ commit: ZoneCommit, stored: [StoredRecord], receivedMs: UInt64) -> [UInt8]? {
    let size = commit.bytes.count + stored.reduce(0) { $0 + $1.bytes.count + 21 } + 13
    guard size <= Limits.eventPageBytes else { return nil }
    var writer = Bundle.Writer(capacity: size)
    writer.append(commit: commit.bytes, receivedMs: receivedMs)
    for record in stored { writer.append(record) }
    return writer.bytes
  }
}

extension Bundle.Writer {
  mutating func append(_ record: StoredRecord) {
    append(
      record: record.bytes, recordReceivedMs: record.recordReceivedMs, dataReceivedMs: record.dataReceivedMs)
  }
}
