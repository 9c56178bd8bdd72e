internal import Foundation
internal import ZDCProtocol
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// `zdc share`, `zdc unshare`, `zdc shares` and `zdc accept`.
package enum ShareCommands {
  /// `{"isOwner","permissions","tree","userID"}`
  struct Member: Encodable, Sendable {
    /// The path of the tree's root.
    var tree: String
    var userID: String
    var permissions: String
    var isOwner: Bool
  }

  /// `{"durableMs"?,"permissions"?,"queuedMs","userID"}`
  struct ChangeReport: Encodable, Sendable {
    var userID: String
    /// Nil for a removal.
    var permissions: String?
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// `{"commit","date"?,"isKeyReplaced","nodesWithOldKeys","number","removedBy","userID"}`
  struct Receipt: Encodable, Sendable {
    var userID: String
    var removedBy: String
    var number: UInt64
    var commit: String
    var date: String?
    var isKeyReplaced: Bool
    var nodesWithOldKeys: Int

    init(_ receipt: ZDCAccessReceipt) {
      (userID, removedBy) = (receipt.userID, receipt.removedByUserID)
      (number, commit) = (receipt.commitNumber, receipt.commitHash)
      date = receipt.date.map { ISO8601DateFormatter().string(from: $0) }
      (isKeyReplaced, nodesWithOldKeys) = (receipt.isKeyReplaced, receipt.nodesWithOldKeys)
    }
  }

  package static func share(
    _ options: ProfileOptions, user: String, permissions: String, queuesOnly: Bool
  ) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    try await opened.people.fetchUser(id: user, for: engine.user)
    let item = ZDCShareItem(permissions: permissions)
    guard item.permissions.count == permissions.count else {
      throw CommandError(.usage, "invalidPermissions", "the permissions must be letters of r, w, s, R, L, U, W and B")
    }
    var report = try await change(engine, user) { cloud, home in
      _ = try cloud.share(nodeID: home.uuid, withUserID: user, item: item)
    }
    report.permissions = item.permissions
    if !queuesOnly { report.durableMs = try await send(engine) }
    try options.output.object(report)
    options.output.note(
      queuesOnly ? queuedNote : "home:/ is shared with \(user) (\(item.permissions))")
    try await opened.close()
  }

  /// - Parameters:
  ///   - isEager: Whether to replace the keys of all nodes now.
  ///   - showsReceipt: Whether to print the receipts of the user.
  package static func unshare(
    _ options: ProfileOptions, user: String, isEager: Bool, showsReceipt: Bool, queuesOnly: Bool
  ) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    var report = try await change(engine, user) { cloud, home in
      _ = try cloud.unshare(nodeID: home.uuid, withUserID: user)
    }
    if !queuesOnly { report.durableMs = try await send(engine) }
    let left = isEager && !queuesOnly ? try await opened.sync.replaceOldKeys(forLocalUserID: engine.user) : 0
    if showsReceipt {
      try await printReceipts(engine, user)
    } else {
      try options.output.object(report)
      options.output.note(queuesOnly ? queuedNote : "home:/ is no longer shared with \(user)")
    }
    try await opened.close()
    if left > 0 { throw oldKeysLeft(left) }
  }

  private static let queuedNote = "the change is queued: zdc sync sends it"

  private static func oldKeysLeft(_ count: Int) -> CommandError {
    CommandError(
      .failure, "oldKeysLeft", "\(Amounts.count(count, "node")) still have old keys",
      hint: "zdc status shows why; afterwards run zdc unshare with --eager again")
  }

  private static func change(
    _ engine: Engine, _ user: String, _ body: @escaping @Sendable (ZDCCloudTransaction, ZDCNode) throws -> Void
  ) async throws -> ChangeReport {
    try await engine.opened.connection.write { [opened = engine.opened, own = engine.user] transaction in
      guard let cloud = opened.zdc.cloudTransaction(transaction, forLocalUserID: own) else {
        throw ZDCError(.localUserNotFound)
      }
      guard let home = cloud.trunkNode(.home) else { throw ZDCCloudError(.missingParent) }
      try body(cloud, home)
    }
    return ChangeReport(userID: user, queuedMs: WallClock.milliseconds)
  }

  private static func send(_ engine: Engine) async throws -> UInt64 {
    let root = try await engine.opened.reader.read { transaction in
      try engine.opened.cloud(transaction, engine.user).cloud.trunkNode(.home)?.uuid
    }
    let progress = ProgressDisplay(ProgressLine(verb: "share", itemsTotal: 1), isEnabled: false)
    try await engine.settle(NodeSet(root.map { [$0] } ?? []), progress: progress)
    return WallClock.milliseconds
  }

  private static func printReceipts(_ engine: Engine, _ user: String) async throws {
    let output = engine.opened.output
    let receipts = try await engine.opened.reader.read { transaction -> [ZDCAccessReceipt] in
      let cloud = try engine.opened.cloud(transaction, engine.user).cloud
      return cloud.trunkNode(.home).map { cloud.accessReceipts(forNodeID: $0.uuid) } ?? []
    }
    for receipt in receipts.filter({ $0.userID == user }).map(Receipt.init) {
      try output.object(receipt)
      output.line("\(receipt.userID) lost access to home:/ with commit \(receipt.number) (\(receipt.commit))")
      output.line("  removed by \(receipt.removedBy)\(receipt.date.map { ", \($0)" } ?? "")")
      output.line("  the key is \(receipt.isKeyReplaced ? "replaced" : "not replaced yet: run zdc sync")")
      output.line("  \(Amounts.count(receipt.nodesWithOldKeys, "node")) not written since")
    }
  }

  // MARK: Lists

  /// - Parameter isOffered: Whether to ask the server for trees that are offered and not accepted.
  package static func list(_ options: ProfileOptions, isOffered: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if isOffered {
      try await listOffers(engine)
    } else {
      let members = try await opened.reader.read { try allMembers(try opened.cloud($0, engine.user).cloud) }
      for member in members {
        try options.output.object(member)
        let role = member.isOwner ? "  (owner)" : ""
        options.output.line("\(ShownName.text(member.tree))  \(member.userID)  \(member.permissions)\(role)")
      }
    }
    try await opened.close()
  }

  private static func allMembers(_ cloud: ZDCCloudReadTransaction) throws -> [Member] {
    let own = cloud.trunkNode(.home).map { [$0] } ?? []
    return (own + cloud.sharedTreeRoots()).flatMap { root -> [Member] in
      let path = cloud.path(for: root)?.fullPath() ?? ""
      let owner = root.anchor?.userID ?? cloud.localUserID
      return root.shareList.allUserIDs().map { user in
        Member(
          tree: path, userID: user, permissions: root.shareList.shareItem(forUserID: user)?.permissions ?? "",
          isOwner: user == owner)
      }
    }
  }

  private static func listOffers(_ engine: Engine) async throws {
    struct Offer: Encodable {
      var cloudID: String
      var ownerID: String?
    }
    for tree in try await engine.opened.sync.offeredTrees(forLocalUserID: engine.user) {
      try engine.opened.output.object(Offer(cloudID: tree.cloudID, ownerID: tree.ownerID))
      engine.opened.output.line("\(tree.cloudID)  \(tree.ownerID ?? "(unknown owner: give zdc accept their ID)")")
    }
  }

  package static func accept(_ options: ProfileOptions, owner: String) async throws {
    struct Accepted: Encodable {
      var path: String
      var ownerID: String
    }
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    let root = try await opened.sync.acceptTree(ofUserID: owner, forLocalUserID: engine.user)
    let path = try await opened.reader.read { try opened.cloud($0, engine.user).cloud.path(for: root)?.fullPath() }
    try options.output.object(Accepted(path: path ?? "", ownerID: owner))
    options.output.note("the tree is at \(ShownName.text(path ?? ""))")
    try await opened.close()
  }
}
