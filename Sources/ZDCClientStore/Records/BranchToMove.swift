internal import GRDB
internal import ZDCProtocol

/// A branch that the app moves to another zone, as this device has it.
package struct BranchToMove {
  /// The largest number of nodes that move at once. All their rows change in one transaction.
  package static let limit = 10_000

  /// Why a branch cannot move. The last two end by themselves.
  package enum Obstacle: Sendable {
    case tooLarge, pointer, sharing, moving
  }

  private let transaction: ZDCReadTransaction
  private let top: NodeRow
  /// Whether nodes of the branch that are about to be shared can be shared after the move.
  private let sharesLater: Bool

  package init(_ transaction: ZDCReadTransaction, top: NodeRow, sharesLater: Bool = false) {
    (self.transaction, self.top, self.sharesLater) = (transaction, top, sharesLater)
  }

  package var obstacle: Obstacle? {
    get throws {
      if try transaction.nodes.subtreeIDs(of: top.id).count > Self.limit { return .tooLarge }
      if try has("EXISTS (SELECT 1 FROM zdc_pointer WHERE node = below.id)") { return .pointer }
      let isShared = "EXISTS (SELECT 1 FROM zdc_operation WHERE node = below.id AND kind IN (6, 7))"
      if try !sharesLater && has(isShared) { return .sharing }
      if try has("EXISTS (SELECT 1 FROM zdc_moved WHERE node = below.id AND isHeld = 0)") { return .moving }
      return nil
    }
  }

  /// The zones that nodes in the branch are being moved out of.
  package var sources: [Int64] {
    get throws {
      let query = """
        \(Self.below) SELECT DISTINCT m.zone FROM below CROSS JOIN zdc_moved m ON m.node = below.id WHERE m.isHeld = 0
        """
      return try Int64.fetchAll(transaction.database.cachedStatement(sql: query), arguments: [top.id])
    }
  }

  /// Whether a record is queued that names old content (``OperationRow/namesOldContent``). A copy can only have content that its
  /// node has in the cloud now.
  package var namesOldContent: Bool {
    get throws { try has("EXISTS (\(Self.oldContent))") }
  }

  /// Whether such a record may be sent with the next commit of the top's zone. One that has failed, or waits for
  /// something, may stay queued for good.
  package var sendsOldContent: Bool {
    get throws {
      let isReady = "o.reason = \(OperationRow.Reason.ready.rawValue)"
      return try has("n.zone = \(top.zone) AND EXISTS (\(Self.oldContent) AND \(isReady))")
    }
  }

  private static let oldContent = """
    SELECT 1 FROM zdc_operation o
    WHERE o.node = n.id AND o.zone = n.zone AND o.kind <> \(OperationRow.Kind.putData.rawValue) AND o.resend IS NOT NULL
    """

  /// Whether content is queued that is based on other content than its node has in the cloud. The app has to decide about that
  /// first: a copy begins with the content of the cloud, and new content would replace it without a conflict.
  package var isInConflict: Bool {
    get throws {
      var isInConflict = false
      let query = """
        \(Self.below)
        SELECT o.baseETag, n.dataVersion, n.blobID, n.cipherLength, n.contentRoot FROM below
        CROSS JOIN zdc_node n ON n.id = below.id CROSS JOIN zdc_operation o ON o.node = n.id
        WHERE o.kind = \(OperationRow.Kind.putData.rawValue) AND o.state <> \(OperationRow.State.inFlight.rawValue)
        AND n.recordVersion > 0
        """
      try transaction.database.forEachRow(query, [top.id]) { row in
        let content = try row.unsigned(1).map { version in
          NodeRecord.Content(
            dataVersion: version, blobID: try BlobID(row, 2), cipherLength: row.unsigned(3) ?? 0,
            contentRoot: try ContentRoot(row, 4))
        }
        let base: String? = row[0]
        if base != content?.eTag { isInConflict = true }
      }
      return isInConflict
    }
  }

  /// Whether a node's newest version cannot be opened. Nodes that are only shown under another name can move.
  package var isUnreadable: Bool {
    get throws {
      try has("EXISTS (SELECT 1 FROM zdc_leaf l WHERE l.zone = n.zone AND l.node = n.nodeID AND l.pending = 2)")
    }
  }

  /// Whether a node's newest version, or its deletion, is still to be read.
  package var isUnread: Bool {
    get throws {
      let leaves = transaction.leaves(zone: top.zone)
      let isAllRead = try leaves.pendingLeaves(limit: 1)?.isEmpty == true
      if isAllRead, try transaction.delegateFailures.isEmpty(zone: top.zone) { return false }
      if top.isUploaded, try leaves.hasPending(atOrBelow: top.nodeID) { return true }
      return try has(
        """
        n.recordVersion > 0 AND NOT EXISTS (
          SELECT 1 FROM zdc_leaf l WHERE l.zone = n.zone AND l.node = n.nodeID AND l.pending <> 1)
        """)
    }
  }

  private static let below = """
    WITH RECURSIVE below(id) AS (
      SELECT ? UNION ALL SELECT child.id FROM zdc_node child JOIN below ON child.parent = below.id)
    """

  private func has(_ condition: String) throws -> Bool {
    let statement = try transaction.database.cachedStatement(
      sql: """
        \(Self.below) SELECT EXISTS (SELECT 1 FROM below CROSS JOIN zdc_node n ON n.id = below.id WHERE \(condition))
        """)
    return try Bool.fetchOne(statement, arguments: [top.id]) ?? false
  }
}
