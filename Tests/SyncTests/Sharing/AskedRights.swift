import Synchronization
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// What people asked for in a random history: rights of members and their removal, in the order in which they asked.
final class AskedRights: Sendable {
  /// The role in which a person changes a list, as far as their device knows.
  enum Role: Sendable {
    /// The owner of the tree where the node is, or is about to be.
    case owner
    /// A member of another person's branch who may share it.
    case sharer
    /// A member who may not share.
    case member
  }

  struct Ask: Sendable {
    let device: String
    let person: Int
    let role: Role
    let member: Int
    /// Empty for a removal.
    let permissions: ZoneACL.Permissions
    /// The device's name of the node at the top of the branch, which stays when the node moves to another zone.
    let node: String
    /// The node's `cloudID` at that time.
    let cloudID: String
    /// The server's newest commit at that time: the change of the list came later.
    let position: AccessModel.Position
    /// Whether the member was in the list, as far as the device knew. If another member removes them first, a change
    /// of their rights has no effect.
    let wasMember: Bool
    /// Whether the device has queued a change of the node's own list.
    let isQueued: Bool
  }

  private let kept = Mutex<[Ask]>([])
  private let left = Mutex<[UnsentListChanges.Departure]>([])

  var asks: [Ask] { kept.withLock { $0 } }
  var departures: [UnsentListChanges.Departure] { left.withLock { $0 } }

  func append(_ ask: Ask) { kept.withLock { $0.append(ask) } }
  func append(_ departure: UnsentListChanges.Departure) { left.withLock { $0.append(departure) } }
}

extension ZDCNode {
  /// The role in which a user changes the node's list. A node of another person's branch that is not its top was moved
  /// into the user's own tree, because only the owner gives such nodes lists.
  fileprivate func role(of user: String) -> AskedRights.Role {
    guard anchor?.zoneRoot == cloudID else { return .owner }
    let mayShare = shareList.shareItem(forUserID: user)?.hasPermission(.share) ?? false
    return mayShare ? .sharer : .member
  }
}

extension People {
  func share(
    _ path: String, of device: TestDevice, with member: Int, _ letters: String
  ) async throws -> [ZDCCloudOperation] {
    let permissions = ZDCShareItem(permissions: letters).aclPermissions
    return try await asking(for: permissions, of: member, at: path, device) {
      try await device.share(path, with: self[member][0], letters)
    }
  }

  func unshare(_ path: String, of device: TestDevice, with member: Int) async throws {
    _ = try await asking(for: [], of: member, at: path, device) {
      try await device.unshare(path, with: self[member][0])
    }
  }

  /// Queues a change of a list, and records it if that succeeds.
  private func asking(
    for permissions: ZoneACL.Permissions, of member: Int, at path: String, _ device: TestDevice,
    _ change: () async throws -> [ZDCCloudOperation]
  ) async throws -> [ZDCCloudOperation] {
    let (node, position) = (try await device.node(path), try AccessModel.position(of: world.server))
    let wasMember = node.shareList.hasShareItem(forUserID: try self[member][0].localUserID)
    let operations = try await change()
    guard let person = self.person(of: device) else { return operations }
    asked.append(
      AskedRights.Ask(
        device: device.name, person: person, role: node.role(of: try device.localUserID), member: member,
        permissions: permissions, node: "\(device.name) \(node.uuid)", cloudID: node.cloudID, position: position,
        wasMember: wasMember, isQueued: operations.contains { $0.nodeID == node.uuid }))
    return operations
  }

  /// Records a change of the list of a whole branch.
  func note(
    _ permissions: ZoneACL.Permissions, for user: UserID, in zone: ZoneID, by device: TestDevice
  ) throws {
    guard let person = self.person(of: device),
      let member = try indices.first(where: { try self[$0][0].userID == user })
    else { return }
    asked.append(
      AskedRights.Ask(
        device: device.name, person: person, role: .owner, member: member, permissions: permissions,
        node: zone.root.text, cloudID: zone.root.text, position: try AccessModel.position(of: world.server),
        wasMember: true, isQueued: false))
  }
}
