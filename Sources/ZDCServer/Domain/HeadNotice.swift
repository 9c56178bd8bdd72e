package import ZDCProtocol

/// A new head, for the event stream: its status, the users who may be notified, and a page for those who may read all
/// of it.
package struct HeadNotice: Sendable {
  package let status: ZoneStatus
  package let readers: Set<UserID>
  private let base: [UInt8]?
  private let acl: [UInt8]?
  private let grants: [UserID: [UInt8]]

  init(status: ZoneStatus, part: CommitRequest.ZonePart, delta: ZoneDelta) {
    self.status = status
    // Only the owner's streams get the event. Other members query the zone.
    readers = [delta.head.acl.fields.owner]
    acl = part.acl?.bytes
    grants = Dictionary(part.grants.map { ($0.user, $0.bytes) }, uniquingKeysWith: { first, _ in first })
    base = Self.base(part.commit, stored: delta.puts.map(\.record), receivedMs: delta.receivedMs)
  }

  /// Whether all readers get the same page, so that it needs to be encoded only once.
  package var isSameForAll: Bool { acl == nil }

  /// Returns the commit, its access list and this user's grant if it has one, and its records; nil if that is too long.
  package func page(for user: UserID) -> [UInt8]? {
    guard let base else { return nil }
    guard let acl else { return base }
    var writer = Bundle.Writer(capacity: acl.count + base.count + 2_048)
    writer.append(acl: acl)
    if let grant = grants[user] { writer.append(grant: grant) }
    let page = writer.bytes + base
    return page.count <= Limits.eventPageBytes ? page : nil
  }

  private static func base(_ commit: ZoneCommit, stored: [StoredRecord], receivedMs: UInt64) -> [UInt8]? {
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
