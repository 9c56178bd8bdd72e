package import ZDCProtocol
package import ZeroDarkCloud

// Sharing between the accounts of a test.

extension TestDevice {
  /// The ID of the device's first local user.
  package var userID: UserID {
    get throws {
      guard let user = UserID(text: try localUserID) else { throw TestFailure("not a user ID") }
      return user
    }
  }

  /// Fetches, verifies and pins another user's identity chain.
  package func meet(_ other: TestDevice) async throws {
    let session = try await syncManager.engine(for: try localUserID).session
    let user = try other.userID
    guard try await session.identities.recipients([user], own: session.keys).keys[user] != nil else {
      throw TestFailure("the server does not know \(other.name)'s user")
    }
  }

  /// Queues a change of a node's access list: the letters of a member's permissions.
  @discardableResult
  package func share(
    _ path: String = "home:/", with other: TestDevice, _ letters: String = "rw"
  ) async throws -> [ZDCCloudOperation] {
    let user = try other.localUserID
    return try await write { _, cloud in
      guard let node = cloud.node(path: try Self.path(path)) else { throw TestFailure("no node at \(path)") }
      return cloud.recursiveAddShareItem(
        ZDCShareItem(permissions: letters), forUserID: user, nodeID: node.uuid)
    }
  }

  /// Queues the removal of a member from a node's access list.
  @discardableResult
  package func unshare(_ path: String = "home:/", with other: TestDevice) async throws -> [ZDCCloudOperation] {
    let user = try other.localUserID
    return try await write { _, cloud in
      guard let node = cloud.node(path: try Self.path(path)) else { throw TestFailure("no node at \(path)") }
      return cloud.recursiveRemoveShareItem(forUserID: user, nodeID: node.uuid)
    }
  }

  /// The share list of a node, as `letters` by the device whose user has them; the owner is left out.
  package func members(_ others: TestDevice..., of path: String = "home:/") async throws -> [String: String] {
    let list = try await write { _, cloud in cloud.node(path: try Self.path(path))?.shareList }
    var found: [String: String] = [:]
    for other in others {
      found[other.name] = list?.shareItem(forUserID: try other.localUserID)?.permissions
    }
    return found
  }

  /// Accepts another user's home tree and pulls it.
  @discardableResult
  package func accept(_ owner: TestDevice) async throws -> ZDCNode {
    try await syncManager.acceptTree(ofUserID: try owner.localUserID, forLocalUserID: try localUserID)
  }

  /// The path under which an accepted tree shows a path of its owner.
  package func path(_ path: String, of owner: TestDevice) throws -> String {
    let tree = TreeID.derive(owner: try owner.userID, trunk: .home, appTreeID: Self.treeID)
    return "detached:/" + ZoneID(trunkOf: tree).root.text + path
  }

  /// The accepted tree of another user, like ``tree(versions:user:below:)``; nil if there is none.
  package func tree(of owner: TestDevice, versions: Bool = false) async throws -> String? {
    let root = try path("", of: owner)
    let uuid = try await write { _, cloud in cloud.node(path: try Self.path(root))?.uuid }
    guard let uuid else { return nil }
    return try await tree(versions: versions, below: uuid)
  }

  /// Accepts a node that another user shares, and pulls it.
  @discardableResult
  package func accept(_ cloudID: String, of owner: TestDevice) async throws -> ZDCNode {
    try await syncManager.acceptTree(
      ofUserID: try owner.localUserID, cloudID: cloudID, forLocalUserID: try localUserID)
  }

  /// Returns what an invitation to a node contains.
  package func invite(_ path: String) async throws -> ZDCGraftInvite {
    try await write { _, cloud in
      guard let node = cloud.node(path: try Self.path(path)), let invite = cloud.graftInvite(for: node) else {
        throw TestFailure("no invite for \(path)")
      }
      return invite
    }
  }

  /// Grafts a branch, as an app does that has received an invitation from another user.
  @discardableResult
  package func graft(
    _ path: String, _ invite: ZDCGraftInvite, from sender: TestDevice
  ) async throws -> ZDCNode {
    let user = ZDCUser(uuid: try sender.localUserID, isLocal: false)
    return try await write { _, cloud in
      try cloud.graftNode(
        withLocalPath: try Self.path(path), remoteCloudPath: invite.cloudPath, remoteCloudID: invite.cloudID,
        remoteUser: user)
    }
  }

  /// The `cloudID` of the node at a path.
  package func cloudID(_ path: String) async throws -> String {
    try await write { _, cloud in
      guard let node = cloud.node(path: try Self.path(path)) else { throw TestFailure("no node at \(path)") }
      return node.cloudID
    }
  }

  /// The nodes below a path, like ``tree(versions:user:below:)`` with paths from there; nil if there is no such node.
  package func branch(_ path: String, versions: Bool = false) async throws -> String? {
    let top = try await write { _, cloud in
      cloud.node(path: try Self.path(path)).map { (uuid: $0.uuid, path: cloud.shownPath(of: $0)) }
    }
    guard let top else { return nil }
    let lines = try await tree(versions: versions, below: top.uuid).split(separator: "\n")
    return lines.map { $0.dropFirst(top.path == "/" ? 0 : top.path.count) }.joined(separator: "\n")
  }
}
