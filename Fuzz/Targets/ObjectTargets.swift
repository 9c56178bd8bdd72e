internal import ZDCProtocol

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
    FuzzTarget("grant") { bytes in
      guard let grant = try accepted({ try Grant(bytes) }) else { return }
      let again = Grant(zone: grant.zone, zoneKeyGen: grant.zoneKeyGen, user: grant.user, wrap: grant.wrap)
      try FuzzFinding.require(again.bytes == bytes, "a grant has one encoding")
    },
  ]

  /// Returns the decoded object, or nil if the bytes were refused with the expected error type.
  static func accepted<Value>(_ decode: () throws -> Value) throws -> Value? {
    do { return try decode() } catch is ZDCSecurityError { return nil }
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
