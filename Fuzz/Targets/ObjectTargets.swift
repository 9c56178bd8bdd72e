internal import ZDCProtocol
internal import ZDCServerSQLite

extension FuzzTarget {
  /// Signed and hashed objects: every accepted object has exactly one encoding.
  static let objects: [FuzzTarget] = [
    FuzzTarget("identity-link") { bytes in
      guard let link = try accepted({ try IdentityLink(bytes) }) else { return }
      try FuzzFinding.require(link.bytes == bytes, "a link keeps the bytes it came in")
      try FuzzFinding.require(recode(link) == bytes, "a link has one encoding")
    },
    FuzzTarget("node-record") { bytes in
      guard let record = try accepted({ try NodeRecord(bytes) }) else { return }
      try FuzzFinding.require(NodeRecord(record.fields).bytes == bytes, "a record has one encoding")
      try FuzzFinding.require(bytes.count <= Limits.recordBytes, "a record keeps its limit")
    },
    FuzzTarget("compact-record") { bytes in try checkCompactRecord(bytes) },
    FuzzTarget("zone-commit") { bytes in
      guard let commit = try accepted({ try ZoneCommit(bytes) }) else { return }
      let again = ZoneCommit(commit.fields, sign: { _ in commit.signature })
      try FuzzFinding.require(again.bytes == bytes, "a commit has one encoding")
      try FuzzFinding.require(
        1...Limits.commitOperations ~= commit.fields.operations.count, "a commit keeps its number of operations")
    },
    FuzzTarget("zone-acl") { bytes in
      guard let acl = try accepted({ try ZoneACL(bytes) }) else { return }
      let again = ZoneACL(acl.fields, sign: { _ in acl.signature })
      try FuzzFinding.require(again.bytes == bytes, "an access list has one encoding")
    },
    FuzzTarget("acl-edit") { bytes in try checkEdit(bytes) },
    FuzzTarget("state-list") { bytes in
      guard let list = try accepted({ try StateList(bytes) }) else { return }
      try FuzzFinding.require(list.bytes == bytes, "a state list has one encoding")
      try FuzzFinding.require(list.nodes.count * StateList.entryBytes == bytes.count, "a state list has whole entries")
    },
    FuzzTarget("grant") { bytes in
      guard let grant = try accepted({ try Grant(bytes) }) else { return }
      let again = Grant(zone: grant.zone, zoneKeyGen: grant.zoneKeyGen, user: grant.user, wrap: grant.wrap)
      try FuzzFinding.require(again.bytes == bytes, "a grant has one encoding")
    },
    FuzzTarget("message-envelope") { bytes in
      guard let envelope = try accepted({ try MessageEnvelope(bytes) }) else { return }
      let again = MessageEnvelope(
        id: envelope.id, recipient: envelope.recipient, inbox: envelope.inbox,
        recipientEncGen: envelope.recipientEncGen, sealed: envelope.sealed, attachment: envelope.attachment)
      try FuzzFinding.require(again.bytes == bytes, "an envelope has one encoding")
    },
  ]

  /// Checks that an edit has one encoding, and that the list it makes is the only one: the edit between both lists.
  ///
  /// - Parameter bytes: A list and an edit of it, each after its length in four bytes.
  private static func checkEdit(_ bytes: [UInt8]) throws {
    let lists: (ZoneACL, ZoneACLEdit)? = try accepted {
      var reader = ByteReader(bytes)
      let list = try ZoneACL(Array(try reader.readVariable32(limit: Limits.aclBytes)))
      return (list, try ZoneACLEdit(Array(try reader.readVariable32(limit: Limits.aclEditBytes))))
    }
    guard let (old, edit) = lists, let new = try accepted({ try edit.applied(to: old) }) else { return }
    try FuzzFinding.require(ZoneACLEdit(from: old, to: new) == edit, "an edit has one encoding")
    try FuzzFinding.require(new.fields.entries.count <= Limits.aclEntries, "a list keeps its number of entries")
  }

  /// Returns the decoded object, or nil if the bytes were refused with the expected error type.
  static func accepted<Value>(_ decode: () throws -> Value) throws -> Value? {
    do { return try decode() } catch is ZDCSecurityError { return nil }
  }

  /// Checks that whatever a server stores comes out again, whatever its commit says, and that damage traps nothing.
  private static func checkCompactRecord(_ bytes: [UInt8]) throws {
    let fields = try accepted({ try NodeRecord(bytes) })?.fields
    let put = ZoneOperation.Put(
      node: fields?.node ?? .zero, parent: fields?.parent ?? .zero, record: .zero, keyGen: fields?.keyGen ?? 1,
      parentKeyGen: fields?.parentKeyGen ?? 1)
    var context = RecordContext(
      tree: fields?.tree ?? .zero, put: put, writer: fields?.writer ?? .zero, writerGen: fields?.writerGen ?? 1,
      timeMs: fields?.timeMs ?? 0)
    for shift in [0, 1, UInt64.max, 1 << 63] {
      context.timeMs &+= shift
      let compact = CompactRecord(bytes, context: context)
      try FuzzFinding.require(try compact.record(context) == bytes, "a stored record comes out as it came in")
      try FuzzFinding.require(compact.isWhole == (fields == nil), "a record with the fields of its put is compact")
      try FuzzFinding.require(try fields == nil || compact.nameTag() == fields?.nameTag, "the tag is the record's")
      try FuzzFinding.require(try fields == nil || compact.content() == fields?.content, "the content is the record's")
    }
    context.writerGen &+= 1
    let foreign = CompactRecord(bytes, context: context)
    try FuzzFinding.require(try foreign.isWhole && foreign.record(context) == bytes, "another record is stored whole")
    let damaged = CompactRecord(stored: bytes)
    _ = try accepted { try damaged.record(context) }
    _ = try accepted { try damaged.nameTag() }
    _ = try accepted { try damaged.content() }
  }

  private static func recode(_ link: IdentityLink) -> [UInt8] {
    var fields = IdentityLink.Fields(
      kind: link.kind, timeMs: link.timeMs, rootPub: link.rootPub, signPub: link.signPub, encPub: link.encPub)
    fields.seq = link.seq
    fields.prev = link.prev
    fields.userID = link.statedUserID
    fields.signGen = link.signGen
    fields.encGen = link.encGen
    fields.compromise = link.compromise
    fields.keyringVersion = link.keyringVersion
    fields.keyringHash = link.keyringHash
    fields.claims = link.claims
    return fields.unsignedBytes + link.sigRoot + link.sigNewRoot + link.sigSign
  }
}
