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

  /// `{"cloudID","durableMs"?,"permissions"?,"queuedMs","userID"}`
  struct ChangeReport: Encodable, Sendable {
    var userID: String
    /// The shared node's, for `zdc accept`.
    var cloudID: String
    /// Nil for a removal.
    var permissions: String?
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// `{"commit","date"?,"isKeyReplaced","lastReadableNumber","nodesWithOldKeys","number","removedBy","tree","userID"}`
  struct Receipt: Encodable, Sendable {
    /// The path of the node whose access list the user was removed from.
    var tree: String
    var userID: String
    var removedBy: String
    var number: UInt64
    var commit: String
    var date: String?
    var isKeyReplaced: Bool
    var lastReadableNumber: UInt64
    var nodesWithOldKeys: Int

    init(_ receipt: ZDCAccessReceipt, _ tree: String) {
      self.tree = tree
      (userID, removedBy) = (receipt.userID, receipt.removedByUserID)
      (number, commit) = (receipt.commitNumber, receipt.commitHash)
      date = receipt.date.map { ISO8601DateFormatter().string(from: $0) }
      lastReadableNumber = receipt.lastReadableCommitNumber
      (isKeyReplaced, nodesWithOldKeys) = (receipt.isKeyReplaced, receipt.nodesWithOldKeys)
    }
  }

  package static func share(
    _ options: ProfileOptions, user: String, path: String?, permissions: String, queuesOnly: Bool
  ) async throws {
    let path = try sharedPath(path)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    let user = try await opened.userID(typed: user, for: engine.user)
    try await opened.people.fetchUser(id: user, for: engine.user)
    let item = ZDCShareItem(permissions: permissions)
    guard item.permissions.count == permissions.count else {
      throw CommandError(.usage, "invalidPermissions", "the permissions must be letters of r, w, s, R, L, U, W and B")
    }
    let changed = try await change(engine, path) { cloud, node in
      try cloud.share(nodeID: node.uuid, withUserID: user, item: item)
    }
    var report = changed.reports(of: user)[0]
    report.permissions = item.permissions
    if !queuesOnly { report.durableMs = try await send(engine, changed) }
    try options.output.object(report)
    if queuesOnly {
      options.output.note(queuedNote)
    } else {
      options.output.note("\(ShownName.text(path.fullPath())) is shared with \(user) (\(item.permissions))")
      let command = acceptCommand(for: changed.nodes[0], at: path, localUser: engine.user)
      options.output.note("they follow it with: \(command)")
    }
    try await opened.close()
  }

  /// Returns the command with which the other user follows a shared node.
  private static func acceptCommand(for node: ZDCNode, at path: ZDCTreesystemPath, localUser: String) -> String {
    let owner = node.anchor?.userID ?? localUser
    return path.pathComponents.isEmpty ? "zdc accept \(owner)" : "zdc accept \(owner) \(node.cloudID)"
  }

  /// - Parameters:
  ///   - isEager: Whether to replace the keys of all nodes now.
  ///   - showsReceipt: Whether to print the receipts of the user.
  ///   - verifies: Whether to try the user's old keys on what was written since.
  package static func unshare(
    _ options: ProfileOptions, user: String, path: String?, isEager: Bool, showsReceipt: Bool, verifies: Bool,
    queuesOnly: Bool
  ) async throws {
    let path = try sharedPath(path)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    let user = try await opened.userID(typed: user, for: engine.user)
    let changed = try await change(engine, path) { cloud, node in
      let isQueued = cloud.explainQueue().contains { $0.nodeID == node.uuid && $0.kind == "changeList" }
      let operations = try cloud.unshare(nodeID: node.uuid, withUserID: user)
      guard operations.isEmpty, !isQueued else { return operations }
      guard try removals(of: user, atOrBelow: path, cloud).isEmpty else { return [] }
      throw notShared(path, user)
    }
    let durableMs = queuesOnly ? nil : try await send(engine, changed)
    let left = isEager && !queuesOnly ? try await opened.sync.replaceOldKeys(forLocalUserID: engine.user) : 0
    if showsReceipt {
      try await printReceipts(engine, user, path)
    } else if !verifies {
      try printRemovals(options, changed, user, durableMs)
    }
    let readable = verifies ? try await RemovalVerification(engine: engine, user: user).run(below: path) : 0
    try await opened.close()
    if readable > 0 { throw RemovalVerification.failed(readable) }
    if left > 0 { throw oldKeysLeft(left) }
  }

  /// - Parameter durableMs: When the server had all changes; nil if they are only queued.
  private static func printRemovals(
    _ options: ProfileOptions, _ changed: Changed, _ user: String, _ durableMs: UInt64?
  ) throws {
    for var report in changed.reports(of: user) {
      report.durableMs = durableMs
      try options.output.object(report)
    }
    guard durableMs != nil else { return options.output.note(queuedNote) }
    for path in changed.paths { options.output.note("\(ShownName.text(path)) is no longer shared with \(user)") }
  }

  private static func notShared(_ path: ZDCTreesystemPath, _ user: String) -> CommandError {
    CommandError(
      .noInput, "notShared", "\(ShownName.text(path.fullPath())) is not shared with \(ShownName.text(user))",
      hint: "see its members: zdc shares")
  }

  private static let queuedNote = "the change is queued: zdc sync sends it"

  private static func oldKeysLeft(_ count: Int) -> CommandError {
    CommandError(
      .failure, "oldKeysLeft", "\(Amounts.count(count, "node")) still have old keys",
      hint: "zdc status shows why; afterwards run zdc unshare with --eager again")
  }

  /// - Parameter path: A path as the user typed it; nil for the home tree.
  private static func sharedPath(_ path: String?) throws -> ZDCTreesystemPath {
    guard let path else { return ZDCTreesystemPath(pathComponents: []) }
    return try NodePath.parse(path)
  }

  /// The nodes whose access lists were changed, each before those inside of it; the node that was named if there is none.
  private struct Changed: Sendable {
    var nodes: [ZDCNode]
    var paths: [String]
    let queuedMs = WallClock.milliseconds

    func reports(of user: String) -> [ChangeReport] {
      nodes.map { ChangeReport(userID: user, cloudID: $0.cloudID, queuedMs: queuedMs) }
    }
  }

  private static func change(
    _ engine: Engine, _ path: ZDCTreesystemPath,
    _ body: @escaping @Sendable (ZDCCloudTransaction, ZDCNode) throws -> [ZDCCloudOperation]
  ) async throws -> Changed {
    try await engine.opened.connection.write { [opened = engine.opened, own = engine.user] transaction in
      guard let cloud = opened.zdc.cloudTransaction(transaction, forLocalUserID: own) else {
        throw ZDCError(.localUserNotFound)
      }
      let node = try existing(path, cloud)
      let changed = try body(cloud, node).compactMap { cloud.node(id: $0.nodeID) }
      let nodes = changed.isEmpty ? [node] : changed
      return Changed(nodes: nodes, paths: nodes.map { cloud.path(for: $0)?.fullPath() ?? "" })
    }
  }

  private static func existing(_ path: ZDCTreesystemPath, _ cloud: ZDCCloudReadTransaction) throws -> ZDCNode {
    guard let node = cloud.node(path: path) else { throw ReadableTree.notFound(path) }
    return node
  }

  private static func send(_ engine: Engine, _ changed: Changed) async throws -> UInt64 {
    let progress = ProgressDisplay(ProgressLine(verb: "share", itemsTotal: changed.nodes.count), isEnabled: false)
    try await engine.settle(NodeSet(changed.nodes.map(\.uuid)), progress: progress)
    return WallClock.milliseconds
  }

  private static func printReceipts(_ engine: Engine, _ user: String, _ path: ZDCTreesystemPath) async throws {
    let output = engine.opened.output
    let receipts = try await engine.opened.reader.read { transaction in
      try removals(of: user, atOrBelow: path, engine.opened.cloud(transaction, engine.user).cloud)
    }
    for receipt in receipts {
      try output.object(receipt)
      let shown = ShownName.text(receipt.tree)
      output.line("\(receipt.userID) lost access to \(shown) with commit \(receipt.number) (\(receipt.commit))")
      output.line("  removed by \(receipt.removedBy)\(receipt.date.map { ", \($0)" } ?? "")")
      output.line("  the key is \(receipt.isKeyReplaced ? "replaced" : "not replaced yet: run zdc sync")")
      output.line("  \(Amounts.count(receipt.nodesWithOldKeys, "node")) not written since")
      let last = receipt.lastReadableNumber
      output.line("  what was written up to commit \(last) may have been copied; that cannot be undone")
    }
  }

  /// Returns the receipts of a node's tree, and of the branches inside that their owner has shared separately.
  private static func removals(
    of user: String, atOrBelow path: ZDCTreesystemPath, _ cloud: ZDCCloudReadTransaction
  ) throws -> [Receipt] {
    let node = try existing(path, cloud)
    let inner = cloud.sharedTreeRoots().filter { $0.anchor?.userID == node.anchor?.userID && $0.uuid != node.uuid }
      .map { ($0, cloud.path(for: $0)?.fullPath() ?? "") }
      .filter { $0.1.hasPrefix(path.isTrunk ? path.fullPath() : path.fullPath() + "/") }
      .sorted { $0.1 < $1.1 }
    return ([(node, path.fullPath())] + inner).flatMap { node, path in
      cloud.accessReceipts(forNodeID: node.uuid).filter { $0.userID == user }.map { Receipt($0, path) }
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
    let output = engine.opened.output
    let offers = try await engine.opened.sync.offeredTrees(forLocalUserID: engine.user)
    for tree in offers {
      try output.object(Offer(cloudID: tree.cloudID, ownerID: tree.ownerID))
      output.line("\(tree.cloudID)  \(tree.ownerID ?? "(owner unknown)")")
    }
    guard !offers.isEmpty else { return }
    output.note("to follow one, ask its owner for their user ID: zdc accept OWNER_ID CLOUD_ID")
  }

  /// - Parameter cloudID: The shared node's; nil for the owner's home tree.
  package static func accept(_ options: ProfileOptions, owner: String, cloudID: String?) async throws {
    struct Accepted: Encodable {
      var path: String
      var ownerID: String
    }
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    let owner = try await opened.userID(typed: owner, for: engine.user)
    let root = try await follow(owner, cloudID, engine)
    let path = try await opened.reader.read { try opened.cloud($0, engine.user).cloud.path(for: root)?.fullPath() }
    try options.output.object(Accepted(path: path ?? "", ownerID: owner))
    options.output.note("the tree is at \(ShownName.text(path ?? ""))")
    try await opened.close()
  }

  private static func follow(_ owner: String, _ cloudID: String?, _ engine: Engine) async throws -> ZDCNode {
    let sync = engine.opened.sync
    do {
      guard let cloudID else { return try await sync.acceptTree(ofUserID: owner, forLocalUserID: engine.user) }
      return try await sync.acceptTree(ofUserID: owner, cloudID: cloudID, forLocalUserID: engine.user)
    } catch let error as ServerError where error.code == .notFound {
      let wanted = cloudID == nil ? "home tree" : "such node"
      throw CommandError(
        .noInput, "notShared",
        "the server knows no \(wanted) of \(ShownName.text(owner)) that is shared with this account",
        hint: "zdc shares --offered lists what is shared with it; name one: zdc accept OWNER_ID CLOUD_ID")
    }
  }
}
