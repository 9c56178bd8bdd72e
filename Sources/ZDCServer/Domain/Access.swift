internal import ZDCProtocol

/// Who may see what. What is hidden answers like what does not exist.
enum Access {
  /// The zone, if the user holds all these rights in it now.
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

  /// Content that the user may read now: `r`, and not the records only.
  static func content(
    _ id: BlobID, node: NodeID, tree: TreeID, user: UserID, in reader: any MetadataReader
  ) throws -> BlobRow {
    let unknown = ServerError(.notFound, "no such content")
    guard let blob = try reader.blob(id), blob.node == node, blob.state == .attached else { throw unknown }
    guard let rights = try reader.permissions(of: user, in: blob.zone), mayReadContent(rights) else { throw unknown }
    guard try reader.treeID(of: blob.zone) == tree else { throw unknown }
    return blob
  }

  static func mayReadContent(_ rights: ZoneACL.Permissions) -> Bool {
    rights.contains(.read) && !rights.contains(.recordsOnly)
  }
}

/// Signature keys out of the store's verified chains.
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
