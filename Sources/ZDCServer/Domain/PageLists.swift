internal import ZDCProtocol

/// The access lists of a page, in the order of their commits.
///
/// A log to which 1,000 members came one by one has 36 MB of whole lists. Edits of the list before have a few hundred
/// bytes each.
struct PageLists {
  let zone: ZoneKey
  private let withEdits: Bool
  private let reader: any MetadataReader
  private var previous: ZoneACL?

  init(zone: ZoneKey, withEdits: Bool, reader: any MetadataReader) {
    (self.zone, self.withEdits, self.reader) = (zone, withEdits, reader)
  }

  /// Appends a commit's list, or the edit that gives it if the caller wants edits and that is shorter.
  ///
  /// - Returns: the list.
  mutating func append(_ bytes: [UInt8], ofCommit seq: UInt64, to writer: inout Bundle.Writer) throws -> ZoneACL {
    let list = try ZoneACL(bytes)
    defer { previous = list }
    guard withEdits, let old = try previous ?? reader.list(before: seq, of: zone).map({ try ZoneACL($0) }) else {
      writer.append(acl: bytes)
      return list
    }
    let edit = ZoneACLEdit(from: old, to: list)
    if edit.bytes.count < bytes.count { writer.append(aclEdit: edit) } else { writer.append(acl: bytes) }
    return list
  }
}
