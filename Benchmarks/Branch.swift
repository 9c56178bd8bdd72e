import Foundation
import ZDCTreesystem
import ZeroDarkCloud

/// A branch that its owner shares.
struct Branch: Sendable {
  var owner: Person
  var name: String

  private var path: ZDCTreesystemPath { ZDCTreesystemPath(pathComponents: [name]) }

  /// Creates the branch with nodes below its root, and waits until the server has them.
  init(_ name: String, of owner: Person, nodes: Int) async throws {
    (self.owner, self.name) = (owner, name)
    let pushed = owner.device.app.pushed.count
    try await owner.device.create([name], user: owner.user)
    for first in stride(from: 0, to: nodes, by: 10_000) {
      let names = (first..<min(first + 10_000, nodes)).map { "node \($0)" }
      try await owner.device.create(names, below: [name], user: owner.user)
    }
    try await owner.device.app.pushed.wait(until: pushed + nodes + 1, seconds: 600)
  }

  /// Gives users access, whom the owner has met, and waits until the server has it.
  func share(with users: [String]) async throws {
    let path = path
    try await owner.transaction { cloud in
      guard let node = cloud.node(path: path) else { throw BenchError("no such node") }
      for user in users {
        _ = cloud.recursiveAddShareItem(ZDCShareItem(permissions: "rw"), forUserID: user, nodeID: node.uuid)
      }
    }
    try await owner.syncUntilIdle()
  }

  /// Takes a user's access away, and waits until the server has it.
  func remove(_ user: String) async throws {
    let path = path
    try await owner.transaction { cloud in
      guard let node = cloud.node(path: path) else { throw BenchError("no such node") }
      _ = cloud.recursiveRemoveShareItem(forUserID: user, nodeID: node.uuid)
    }
    try await owner.syncUntilIdle()
  }

  func invite() async throws -> ZDCGraftInvite {
    let path = path
    let invite = try await owner.transaction { cloud in cloud.node(path: path).flatMap { cloud.graftInvite(for: $0) } }
    guard let invite else { throw BenchError("the branch is not shared") }
    return invite
  }

  /// Grafts the branch under the same name, without waiting for its nodes.
  func graft(_ invite: ZDCGraftInvite, by guest: Person) async throws {
    let inviter = try await guest.meet(owner.user)
    let path = path
    try await guest.transaction { cloud in
      try cloud.graftNode(
        withLocalPath: path, remoteCloudPath: invite.cloudPath, remoteCloudID: invite.cloudID, remoteUser: inviter)
    }
  }
}
