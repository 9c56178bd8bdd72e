internal import ZDCProtocol
public import ZDCTreesystem

/// The collection in which apps of the original framework look up nodes by ``ZDCNode/uuid``.
public let kZDCCollection_Nodes = "ZDCNodes"
/// The collection in which apps of the original framework look up users.
public let kZDCCollection_Users = "ZDCUsers"

extension ZDCReadTransaction {
  /// Returns the node with that ``ZDCNode/uuid``, of any local user and tree; nil if it is not on this device. Errors
  /// poison the transaction.
  ///
  /// ```swift
  /// let node = try await connection.read { $0.node(id: listNodeID) }
  /// ```
  public final func node(id nodeID: String) -> ZDCNode? {
    poisoning { try nodes.node(uuid: nodeID).map(zdcNode) } ?? nil
  }

  /// Returns the user, with what this device knows about their identity; nil if this device has not met them: see
  /// `ZDCUserManager.fetchUser(id:for:)`. It meets the members of an access list when the list arrives. Errors poison the transaction.
  ///
  /// ```swift
  /// let bob = try await connection.read { $0.user(id: bobsUserID) }
  /// show([bob?.displayName ?? "unknown"])
  /// ```
  public final func user(id userID: String) -> ZDCUser? {
    poisoning { () -> ZDCUser? in
      guard let id = UserID(text: userID) else { return nil }
      if let row = try localUsers.user(id), row.state == .ready { return try own(row) }
      guard let chain = try users.chain(of: id) else { return nil }
      let contact = try contacts.contact(of: id)
      let links = try Self.links(chain)
      return ZDCUser(
        uuid: userID, identity: contact.state(links), isBlocked: contact.isBlocked,
        name: try shownProfile(of: id)?.shownName, handle: links.handle?.text)
    } ?? nil
  }

  /// Returns the name and the avatar that a user, or a local user, has chosen; nil if this device has none. Errors poison
  /// the transaction.
  ///
  /// Those of other users come from people with whom a local user shares, or whose messages it accepts. They are verified
  /// to be the user's own words, but anyone can choose any name.
  ///
  /// ```swift
  /// let picture = try await connection.read { $0.profile(ofUserID: senderID)?.avatar }
  /// ```
  public final func profile(ofUserID userID: String) -> ZDCProfile? {
    poisoning { try UserID(text: userID).flatMap(shownProfile).map(ZDCProfile.init) } ?? nil
  }

  private func own(_ row: LocalUserRow) throws -> ZDCUser {
    let links = try Self.links(row.chain)
    let last = links.last
    let isClosed = last?.kind == .closed
    return ZDCUser(
      uuid: row.userID.text, identity: isClosed ? .closed : .verified(link: last?.seq ?? 0), isLocal: true,
      name: try shownProfile(of: row.userID)?.shownName, handle: links.handle?.text)
  }

  /// Reads a pinned chain, which was verified when it was pinned.
  private static func links(_ chain: [UInt8]) throws -> [IdentityLink] {
    var reader = Bundle.Reader(chain)
    return try reader.all().compactMap { item in if case .link(let link) = item { link } else { nil } }
  }

  /// Returns the account; nil if it is not on this device. Errors poison the transaction.
  ///
  /// ```swift
  /// let owner = transaction.localUser(id: node.localUserID)
  /// show([owner?.displayName ?? ""])
  /// ```
  public final func localUser(id localUserID: String) -> ZDCLocalUser? {
    poisoning { () -> ZDCLocalUser? in
      guard let id = UserID(text: localUserID), let row = try localUsers.user(id), row.state == .ready else {
        return nil
      }
      return row.localUser(name: try shownProfile(of: id)?.shownName)
    } ?? nil
  }

  /// The node or user, which the original kept among the app's objects; nil for another collection.
  final func frameworkObject(forKey key: String, inCollection collection: String) -> Any?? {
    switch collection {
    case kZDCCollection_Nodes: .some(node(id: key))
    case kZDCCollection_Users: .some(localUser(id: key) ?? user(id: key) as Any?)
    default: nil
    }
  }
}
