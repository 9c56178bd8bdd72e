/// The difference between two consecutive versions of an access list (PROTOCOL 3.13).
///
/// A list of 1,000 members has 71 KB. In a log to which members came one by one, the whole lists would have 36 MB.
package struct ZoneACLEdit: Sendable, Hashable {
  /// Everything in front of the entries.
  private let head: [UInt8]
  /// Sorted, like the users of ``changed``.
  private let removed: [UserID]
  /// Entries that are new or differ.
  private let changed: [ZoneACL.Entry]
  /// Everything after the entries.
  private let tail: [UInt8]
  package let bytes: [UInt8]

  private static let entryBytes = 71
  /// Writer, generation, time and signature.
  private static let tailBytes = 32 + 4 + 8 + ZoneACL.signatureBytes

  /// Creates the edit that turns one list into another.
  package init(from old: ZoneACL, to new: ZoneACL) {
    let entries = old.fields.entries.byUser
    let remaining = new.fields.entries.byUser
    removed = old.fields.entries.map(\.user).filter { remaining[$0] == nil }
    changed = new.fields.entries.filter { entries[$0.user] != $0 }
    let entryBytes = 2 + new.fields.entries.count * Self.entryBytes
    head = Array(new.bytes.dropLast(Self.tailBytes + entryBytes))
    tail = Array(new.bytes.suffix(Self.tailBytes))
    bytes = Self.encode(head: head, removed: removed, changed: changed, tail: tail)
  }

  package init(_ bytes: [UInt8]) throws(ZDCSecurityError) {
    try require(bytes.count <= Limits.aclEditBytes, .limitExceeded)
    var reader = ByteReader(bytes)
    head = Array(try reader.readVariable32(limit: Limits.aclBytes))
    removed = try Self.readUsers(&reader)
    changed = try Self.readEntries(&reader)
    tail = Array(try reader.read(count: Self.tailBytes))
    try reader.finish()
    self.bytes = bytes
  }

  /// Returns the one encoding of the list after the edit, decoded.
  ///
  /// - Parameter old: The version before it.
  /// - Throws: `aclRollback` for another list; `nonCanonicalEncoding` if the edit names more than what differs, or for
  ///   the form of the new list. The caller compares the new list's hash with its commit's, and verifies the list.
  package func applied(to old: ZoneACL) throws(ZDCSecurityError) -> ZoneACL {
    var entries = old.fields.entries.byUser
    for user in removed { try require(entries.removeValue(forKey: user) != nil, .nonCanonicalEncoding) }
    let users = Set(removed)
    for entry in changed {
      let differs = entries.updateValue(entry, forKey: entry.user) != entry && !users.contains(entry.user)
      try require(differs, .nonCanonicalEncoding)
    }
    try require(entries.count <= Limits.aclEntries, .limitExceeded)
    var out = ByteWriter(capacity: head.count + 2 + entries.count * Self.entryBytes + tail.count)
    out.append(contentsOf: head)
    Self.write(entries.values.sorted { $0.user < $1.user }, to: &out)
    out.append(contentsOf: tail)
    let list = try ZoneACL(out.bytes)
    try require(list.fields.prev == old.hash, .aclRollback)
    return list
  }

  private static func encode(
    head: [UInt8], removed: [UserID], changed: [ZoneACL.Entry], tail: [UInt8]
  ) -> [UInt8] {
    var out = ByteWriter(capacity: 8 + head.count + removed.count * 32 + changed.count * entryBytes + tail.count)
    out.append32(head)
    out.append(UInt16(removed.count))
    for user in removed { out.append(user) }
    write(changed, to: &out)
    out.append(contentsOf: tail)
    return out.bytes
  }

  private static func write(_ entries: [ZoneACL.Entry], to out: inout ByteWriter) {
    out.append(UInt16(entries.count))
    for entry in entries { entry.write(to: &out) }
  }

  private static func readUsers(_ reader: inout ByteReader) throws(ZDCSecurityError) -> [UserID] {
    let count = Int(try reader.readUInt16())
    try require(count <= Limits.aclEntries, .limitExceeded)
    var users: [UserID] = []
    for _ in 0..<count {
      let user: UserID = try reader.read32()
      try require(users.last.map { $0 < user } ?? true, .nonCanonicalEncoding)
      users.append(user)
    }
    return users
  }

  private static func readEntries(_ reader: inout ByteReader) throws(ZDCSecurityError) -> [ZoneACL.Entry] {
    let count = Int(try reader.readUInt16())
    try require(count <= Limits.aclEntries, .limitExceeded)
    var entries: [ZoneACL.Entry] = []
    for _ in 0..<count {
      let entry = try ZoneACL.Entry(&reader)
      try require(entries.last.map { $0.user < entry.user } ?? true, .nonCanonicalEncoding)
      entries.append(entry)
    }
    return entries
  }
}

extension [ZoneACL.Entry] {
  fileprivate var byUser: [UserID: ZoneACL.Entry] {
    Dictionary(map { ($0.user, $0) }, uniquingKeysWith: { $1 })
  }
}
