internal import ZDCProtocol

/// Access checks. An object that the user may not see gets the same answer as one that does not exist.
enum Access {
  /// Returns the zone, if the user currently holds all these permissions in it.
  static func zone(
    _ id: ZoneID, of user: UserID, needs rights: ZoneACL.Permissions, in reader: any MetadataReader
  ) throws -> ZoneRow {
    let (row, permissions) = try entry(id, of: user, in: reader)
    guard permissions.isSuperset(of: rights) else { throw noZone }
    return row
  }

  /// Returns the zone, and the permissions that the user currently has in it.
  static func entry(
    _ id: ZoneID, of user: UserID, in reader: any MetadataReader
  ) throws -> (zone: ZoneRow, permissions: ZoneACL.Permissions) {
    guard let row = try reader.zone(id), let permissions = try reader.permissions(of: user, in: row.key) else {
      throw noZone
    }
    return (row, permissions)
  }

  /// Returns the zone and the member who may read in it.
  static func reader(
    _ id: ZoneID, _ user: UserID, in reader: any MetadataReader
  ) throws -> (zone: ZoneRow, member: MemberRow) {
    guard let row = try reader.zone(id), let member = try reader.member(user, of: row.key),
      member.permissions.contains(.read)
    else { throw noZone }
    return (row, member)
  }

  /// A zone's log, as far as a user may read it.
  struct ReadableLog {
    var zone: ZoneRow
    /// The last commit that the user may read.
    var status: ZoneStatus
    /// Whether that is the commit that removed the user from the access list.
    var hasEnded: Bool
  }

  /// Returns the log for a member who may read, and for a former member.
  static func log(_ id: ZoneID, of user: UserID, in reader: any MetadataReader) throws -> ReadableLog {
    guard let row = try reader.zone(id), let member = try reader.member(user, of: row.key) else { throw noZone }
    guard let end = member.leftSeq else {
      guard member.permissions.contains(.read) else { throw noZone }
      return ReadableLog(zone: row, status: row.status, hasEnded: false)
    }
    guard let commit = try reader.commit(end, of: row.key) else { throw noZone }
    return ReadableLog(zone: row, status: ZoneStatus(zone: id, seq: end, head: commit.hash), hasEnded: true)
  }

  private static let noZone = ServerError(.notFound, "no such zone")

  static func holds(
    _ rights: ZoneACL.Permissions, user: UserID, zone: ZoneKey, in reader: any MetadataReader
  ) throws -> Bool {
    try reader.permissions(of: user, in: zone)?.isSuperset(of: rights) ?? false
  }

  /// Returns whether a commit by the user can succeed; a member who may share may also write.
  static func mayWrite(in zone: ZoneID, user: UserID, in reader: any MetadataReader) throws -> Bool {
    guard let row = try reader.zone(zone) else { return false }
    return try holds(.write, user: user, zone: row.key, in: reader)
  }

  /// Returns content that the user may read now. Replaced content is only for those who were members at that time.
  /// Content of an outbox is also for those in whose mailbox a message names it.
  ///
  /// Missing content is reported as gone to users who may read the tree, and as not found to all others.
  static func content(
    _ id: BlobID, node: NodeID, tree: TreeID, user: UserID, in reader: any MetadataReader
  ) throws -> BlobRow {
    let unknown = ServerError(.notFound, "no such content")
    let name = ContentName(node: node, blob: id)
    guard let blob = try reader.contents([name], in: tree)[name] else {
      throw try missing(node: node, tree: tree, user: user, in: reader)
    }
    guard blob.node == node, blob.state == .attached, try reader.treeID(of: blob.zone) == tree else { throw unknown }
    guard let member = try reader.member(user, of: blob.zone), member.permissions.contains(.read) else {
      guard try blob.replacedMs == nil && Attachments.isSent(blob.id, of: node, in: tree, to: user, reader) else {
        throw unknown
      }
      return blob
    }
    guard member.mayRead(replacedMs: blob.replacedMs) else { throw gone }
    return blob
  }

  private static func missing(
    node: NodeID, tree: TreeID, user: UserID, in reader: any MetadataReader
  ) throws -> ServerError {
    let zone = try reader.zone(ofNode: node, tree: tree) ?? reader.zone(ZoneID(trunkOf: tree))
    guard let zone, let rights = try reader.permissions(of: user, in: zone.key), rights.contains(.read) else {
      return ServerError(.notFound, "no such content")
    }
    return gone
  }

  private static let gone = ServerError(.blobGone, "the content is no longer kept")
}

/// Signature keys from the store's verified chains.
struct StoredIdentities: IdentityDirectory {
  let reader: any MetadataReader

  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    try reader.signKey(user: user, generation: generation)
  }
}

/// Signature keys of one identity that was just verified.
struct SingleIdentity: IdentityDirectory {
  let identity: VerifiedIdentity

  func signKey(user: UserID, generation: UInt32) -> [UInt8]? {
    user == identity.userID ? identity.signKeys[generation] : nil
  }
}
