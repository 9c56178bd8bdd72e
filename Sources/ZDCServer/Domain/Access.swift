internal import ZDCProtocol

/// Access checks. An object that the user may not see gets the same answer as one that does not exist.
enum Access {
  /// Returns the zone, if the user currently holds all these permissions in it.
  static func zone(
    _ id: ZoneID, of user: UserID, needs rights: ZoneACL.Permissions, in reader: any MetadataReader
  ) throws -> ZoneRow {
    guard let row = try reader.zone(id), try holds(rights, user: user, zone: row.key, in: reader) else {
      throw ServerError(.notFound, "no such zone")
    }
    return row
  }

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

  /// Returns content that the user may read now.
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
    guard blob.node == node, blob.state == .attached else { throw unknown }
    guard try holds(.read, user: user, zone: blob.zone, in: reader) else { throw unknown }
    guard try reader.treeID(of: blob.zone) == tree else { throw unknown }
    return blob
  }

  private static func missing(
    node: NodeID, tree: TreeID, user: UserID, in reader: any MetadataReader
  ) throws -> ServerError {
    let zone = try reader.zone(ofNode: node, tree: tree) ?? reader.zone(ZoneID(trunkOf: tree))
    guard let zone, try holds(.read, user: user, zone: zone.key, in: reader) else {
      return ServerError(.notFound, "no such content")
    }
    return ServerError(.blobGone, "the content is no longer kept")
  }
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
