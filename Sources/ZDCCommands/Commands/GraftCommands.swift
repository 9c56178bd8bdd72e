internal import Foundation
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// `zdc invite` and `zdc graft`.
package enum GraftCommands {
  /// `{"cloudID","cloudPath","path"}`
  struct Invitation: Encodable, Sendable {
    var path: String
    var cloudID: String
    var cloudPath: String
  }

  /// `{"cloudID","durableMs"?,"ownerID","path","queuedMs"}`
  struct Grafted: Encodable, Sendable {
    var path: String
    var cloudID: String
    var ownerID: String
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  package static func invite(_ options: ProfileOptions, path: String) async throws {
    let path = try NodePath.parse(path)
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let invite = try await opened.reader.read { transaction in
      let tree = try opened.cloud(transaction, user)
      return try tree.cloud.graftInvite(for: tree.requireNode(at: path))
    }
    guard let invite else {
      throw CommandError(
        .noInput, "notShared", "\(ShownName.text(path.fullPath())) is not shared with another user",
        hint: "share it with zdc share, and sync")
    }
    let text = invite.cloudPath.path()
    try opened.output.object(Invitation(path: path.fullPath(), cloudID: invite.cloudID, cloudPath: text))
    opened.output.line(invite.cloudID)
    opened.output.line(text)
    try await opened.close()
  }

  package static func graft(
    _ options: ProfileOptions, cloudID: String, cloudPath: String, path: String, queuesOnly: Bool
  ) async throws {
    let path = try NodePath.parse(path)
    guard let remote = ZDCCloudPath(path: cloudPath) else {
      throw CommandError(
        .usage, "invalidCloudPath", "this is not a cloud path, or a part of it is missing",
        hint: "pass both lines that zdc invite printed")
    }
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    let owner = try await opened.people.fetchUser(id: remote.ownerID, for: engine.user)
    let node = try await graft(engine, ZDCGraftInvite(cloudID: cloudID, cloudPath: remote), owner, path)
    var report = Grafted(
      path: path.fullPath(), cloudID: cloudID, ownerID: remote.ownerID, queuedMs: WallClock.milliseconds)
    if !queuesOnly { report.durableMs = try await settle(engine, node) }
    try await requireReadable(node, path, opened, engine.user)
    try options.output.object(report)
    let shown = ShownName.text(path.fullPath())
    options.output.note(queuesOnly ? "queued: zdc sync accepts the branch" : "the branch is at \(shown)")
    try await opened.close()
  }

  private static func graft(
    _ engine: Engine, _ invite: ZDCGraftInvite, _ owner: ZDCUser, _ path: ZDCTreesystemPath
  ) async throws -> ZDCNode {
    try await engine.opened.connection.write { [opened = engine.opened, own = engine.user] transaction in
      guard let cloud = opened.zdc.cloudTransaction(transaction, forLocalUserID: own) else {
        throw ZDCError(.localUserNotFound)
      }
      return try cloud.graftNode(
        withLocalPath: path, remoteCloudPath: invite.cloudPath, remoteCloudID: invite.cloudID, remoteUser: owner)
    }
  }

  /// - Throws: ``CommandError`` if the pull has shown that this account may not read the branch. The pointer stays.
  private static func requireReadable(
    _ node: ZDCNode, _ path: ZDCTreesystemPath, _ opened: OpenProfile, _ user: String
  ) async throws {
    let unreadable = try await opened.sync.unreadableNodes(localUserID: user)
    guard unreadable.contains(where: { $0.nodeID == node.uuid && $0.code == .inviteNotAuthorized }) else { return }
    throw CommandError(
      .noPermission, "branchNotReadable",
      "\(ShownName.text(path.fullPath())): the server does not let this account read the branch yet",
      hint: "ask its owner to share it again, then run zdc sync; or give it up with zdc leave")
  }

  /// Sends the pointer, then reads the branch.
  private static func settle(_ engine: Engine, _ node: ZDCNode) async throws -> UInt64 {
    let progress = ProgressDisplay(ProgressLine(verb: "graft", itemsTotal: 1), isEnabled: false)
    try await engine.settle(NodeSet([node.uuid]), progress: progress)
    let sent = WallClock.milliseconds
    try await engine.pull()
    return sent
  }
}
