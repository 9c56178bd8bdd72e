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

  /// Queues a change of the home trunk's access list: the letters of a member's permissions.
  @discardableResult
  package func share(with other: TestDevice, _ letters: String = "rw") async throws -> [ZDCCloudOperation] {
    let user = try other.localUserID
    return try await write { _, cloud in
      guard let home = cloud.trunkNode(.home) else { throw TestFailure("no home") }
      return cloud.recursiveAddShareItem(
        ZDCShareItem(permissions: letters), forUserID: user, nodeID: home.uuid)
    }
  }

  /// Queues the removal of a member from the home trunk's access list.
  @discardableResult
  package func unshare(with other: TestDevice) async throws -> [ZDCCloudOperation] {
    let user = try other.localUserID
    return try await write { _, cloud in
      guard let home = cloud.trunkNode(.home) else { throw TestFailure("no home") }
      return cloud.recursiveRemoveShareItem(forUserID: user, nodeID: home.uuid)
    }
  }

  /// The share list of the home trunk, as `letters` by the device whose user has them; the owner is left out.
  package func members(_ others: TestDevice...) async throws -> [String: String] {
    let list = try await write { _, cloud in cloud.trunkNode(.home)?.shareList }
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
}
