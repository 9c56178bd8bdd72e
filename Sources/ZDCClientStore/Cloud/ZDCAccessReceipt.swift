public import Foundation
internal import ZDCProtocol
public import ZDCTreesystem

/// The proof that a user lost access to a tree, from its verified log.
///
/// Nodes keep their keys until they are written again or ``ZDCSyncManager`` replaces them. Whatever the user could read
/// before the removal may have been copied; that cannot be undone.
public struct ZDCAccessReceipt: Sendable, Hashable, Codable {
  /// The text of the user's ID.
  public var userID: String
  /// The user who signed the removal; the same as ``userID`` for a user who left.
  public var removedByUserID: String
  /// The position of the removing commit in the tree's log.
  public var commitNumber: UInt64
  /// The removing commit's hash, as text.
  public var commitHash: String
  /// The time at which the server received the commit; nil if unknown.
  public var date: Date?
  /// The generation of the tree's last key that the user had.
  public var lastKeyGeneration: UInt32
  /// Whether the tree has a newer key since, so that the user can read nothing that is written with it.
  public var isKeyReplaced: Bool
  /// The number of nodes in the tree that still have the keys from before its last removal. The user may still read
  /// them, with the server's help, until they are written again.
  ///
  /// ``ZDCCloudReadTransaction/cloudIDsWithOldKeys(forNodeID:after:limit:)`` names them.
  public var nodesWithOldKeys: Int

  /// The position of the last commit that the user could read. Everything up to it may have been copied, which no later
  /// change can undo.
  public var lastReadableCommitNumber: UInt64 { commitNumber - min(commitNumber, 1) }
}

extension ZDCCloudReadTransaction {
  /// Returns a receipt for each user who lost access to a node's tree, oldest first. The receipts of a user who was
  /// added again remain.
  ///
  /// Takes time in proportion to the size of the tree. Errors poison the transaction.
  ///
  /// ```swift
  /// for receipt in cloud.accessReceipts(forNodeID: list.uuid) where receipt.nodesWithOldKeys > 0 {
  ///   print(receipt.userID, "lost access;", receipt.nodesWithOldKeys, "nodes still have old keys")
  /// }
  /// ```
  ///
  /// - Parameter nodeID: The ``ZDCNode/uuid`` of any node in the tree. An unknown node has no receipts.
  public final func accessReceipts(forNodeID nodeID: String) -> [ZDCAccessReceipt] {
    transaction.poisoning {
      guard let node = try row(nodeID), let zone = try transaction.zones.zone(id: node.zone), let list = zone.head?.acl
      else { return [] }
      let removals = try RemovalStore(transaction, zone: zone.id).removals()
      let stale = removals.isEmpty ? 0 : try transaction.leaves(zone: zone.id).staleCount(below: zone.zone.root)
      return removals.map { removal in
        ZDCAccessReceipt(
          userID: removal.member.text, removedByUserID: removal.writer.text, commitNumber: removal.seq,
          commitHash: removal.commit.text, date: Date(serverMs: removal.receivedMs),
          lastKeyGeneration: removal.keyGen, isKeyReplaced: list.fields.zoneKeyGen > removal.keyGen,
          nodesWithOldKeys: stale)
      }
    } ?? []
  }

  /// Returns the nodes in a node's tree that still have the keys from before its last removal, in pages. Errors poison the
  /// transaction.
  ///
  /// A page reads the tree up to its last node, so all pages together read each node once, and only a page is in memory.
  /// A tree without such nodes takes time in proportion to its size.
  ///
  /// ```swift
  /// var page = cloud.cloudIDsWithOldKeys(forNodeID: list.uuid)
  /// while let last = page.last {
  ///   print(page.compactMap { cloud.node(cloudID: $0)?.name })
  ///   page = cloud.cloudIDsWithOldKeys(forNodeID: list.uuid, after: last)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - nodeID: The ``ZDCNode/uuid`` of any node in the tree. An unknown node has none.
  ///   - last: The last one of the page before; nil for the first page.
  ///   - limit: Maximum number of nodes.
  /// - Returns: The ``ZDCNode/cloudID`` of each, in an order that later pages keep, also of nodes that this device cannot
  ///   read.
  public final func cloudIDsWithOldKeys(
    forNodeID nodeID: String, after last: String? = nil, limit: Int = 1_000
  ) -> [String] {
    transaction.poisoning {
      guard let node = try row(nodeID), let zone = try transaction.zones.zone(id: node.zone) else { return [] }
      return try transaction.leaves(zone: zone.id)
        .staleNodes(below: zone.zone.root, after: last.flatMap { NodeID(text: $0) }, limit: max(limit, 0)).map(\.text)
    } ?? []
  }

  /// Returns the nodes with a dedicated share list, except for the roots of the user's trunks: the tops of trees and
  /// branches of other users that the local user has accepted, and those of the user's own shared branches. Errors poison
  /// the transaction.
  ///
  /// ```swift
  /// let shared = try await tree.read { _, cloud in cloud.sharedTreeRoots() }
  /// show(shared.compactMap(\.name))
  /// ```
  public final func sharedTreeRoots() -> [ZDCNode] {
    transaction.poisoning {
      try transaction.zones.zones(localUser: localUser)
        .filter { ($0.owner != nil || !$0.isTrunk) && $0.appTreeID == treeID }
        .compactMap { try transaction.nodes.root(zone: $0.id).map(transaction.zdcNode) }
    } ?? []
  }
}
