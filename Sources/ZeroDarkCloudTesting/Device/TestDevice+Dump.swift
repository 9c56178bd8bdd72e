internal import Foundation
internal import GRDB
internal import ZDCProtocol
internal import ZDCTreesystem
internal import ZeroDarkCloud

extension TestDevice {
  /// Returns the local tree below `home`, one node per line, sorted by path:
  /// `path  version  content  [queued operations]`.
  ///
  /// The version is that of the record in the cloud, `new` before the first upload. The content is that of the app:
  /// nothing if it is empty, `?` if it was not downloaded. The brackets hold each queued operation with the code of its
  /// reason.
  ///
  /// ```
  /// /notes       v2  "hello"
  /// /notes/todo  new  "milk"  [create ready, putData waitingForOperation]
  /// ```
  ///
  /// - Parameter root: The ``ZDCNode/uuid`` of a tree's root; nil for the home trunk.
  public func tree(versions: Bool = true, user: String? = nil, below root: String? = nil) async throws -> String {
    let lines = try await write(user: user) { transaction, cloud in
      try Self.nodes(transaction, user: cloud.localUserID, below: root).compactMap { row -> (String, String)? in
        guard let node = cloud.node(id: row.uuid) else { return nil }
        let path = cloud.shownPath(of: node)
        return (path, try row.line(path, node, versions: versions, transaction))
      }
    }
    return lines.sorted { $0.0 < $1.0 }.map(\.1).joined(separator: "\n")
  }

  /// Returns the queue, in order: `kind path reason`.
  public func queue(user: String? = nil) async throws -> String {
    try await write(user: user) { transaction, cloud in
      try Self.operations(transaction, user: cloud.localUserID).map { operation in
        let node = cloud.node(id: operation.nodeUUID)
        return "\(operation.kind) \(node.map { cloud.shownPath(of: $0) } ?? "(deleted)") \(operation.shownReason)"
      }.joined(separator: "\n")
    }
  }

  /// Returns the number of queued operations of all accounts.
  ///
  /// ```swift
  /// try await a.create("/note", "milk")
  /// #expect(try await a.queueCount() == 2)  // the node, and its content
  /// ```
  public func queueCount() async throws -> Int {
    try await database.read { transaction in
      try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_operation") ?? 0
    }
  }

  /// Returns the codes of the security errors that this device has encountered, oldest first.
  ///
  /// ```swift
  /// #expect(try await b.securityErrors() == [])
  /// ```
  public func securityErrors() async throws -> [String] {
    try await database.read { transaction in
      try String.fetchAll(transaction.database, sql: "SELECT code FROM zdc_security_event ORDER BY id")
    }
  }

  // MARK: Rows

  struct OperationLine: Sendable {
    var kind: String
    var nodeUUID: String
    var reason: String
    var detail: String?

    var shownReason: String { reason }
  }

  private struct NodeLine {
    var uuid: String
    var recordVersion: Int64
    var operations: [OperationLine]

    func line(
      _ path: String, _ node: ZDCNode, versions: Bool, _ transaction: ZDCReadTransaction
    ) throws -> String {
      let content = try RecordingDelegate.content(of: node, transaction)
      let isQueued = operations.contains { $0.kind == "putData" }
      let isCurrent = isQueued || content?.eTag == node.eTag_data || node.eTag_data == nil
      var parts = [path]
      if versions { parts.append(recordVersion == 0 ? "new" : "v\(recordVersion)") }
      parts.append(isCurrent ? content?.shown ?? "" : "?")
      if !operations.isEmpty {
        parts.append("[" + operations.map { "\($0.kind) \($0.shownReason)" }.joined(separator: ", ") + "]")
      }
      return parts.filter { !$0.isEmpty }.joined(separator: "  ")
    }
  }

  private static func nodes(
    _ transaction: ZDCReadTransaction, user: String, below root: String? = nil
  ) throws -> [NodeLine] {
    let queued = Dictionary(grouping: try operations(transaction, user: user), by: \.nodeUUID)
    let trunk = ZDCNode.uuid(forLocalUserID: user, treeID: treeID, trunk: .home)
    return try Row.fetchAll(
      transaction.database,
      sql: """
        WITH RECURSIVE shown(id) AS (
          SELECT id FROM zdc_node WHERE uuid = ?1
          UNION ALL
          SELECT COALESCE(
            (SELECT r.id FROM zdc_zone z JOIN zdc_node r ON r.zone = z.id AND r.parent IS NULL WHERE z.mount = n.id),
            n.id)
          FROM zdc_node n JOIN shown ON n.parent = shown.id
        ) SELECT uuid, recordVersion FROM zdc_node WHERE id IN (SELECT id FROM shown) AND uuid <> ?1
        """, arguments: [root ?? trunk]
    ).map { row in
      NodeLine(uuid: row[0], recordVersion: row[1], operations: queued[row[0]] ?? [])
    }
  }

  private static let kinds: [Int64: String] = [
    1: "create", 2: "move", 3: "modify", 4: "putData", 5: "delete", 6: "changeList", 7: "deliver",
  ]
  private static let reasons = [
    "ready", "waitingForOperation", "backoff", "offline", "notPulledYet", "paused", "noDataFromApp", "promisePending",
    "conflictHeld", "deletedRemotely", "overQuota", "serverSaid", "zoneFrozen", "uploading", "inFlight", "unreadable",
    "exhausted", "notAllowed",
  ]

  private static func operations(_ transaction: ZDCReadTransaction, user: String) throws -> [OperationLine] {
    let trunk = ZDCNode.uuid(forLocalUserID: user, treeID: treeID, trunk: .home)
    return try Row.fetchAll(
      transaction.database,
      sql: """
        SELECT kind, nodeUUID, reason, reasonDetail FROM zdc_operation
        WHERE zone IN (
          SELECT z.id FROM zdc_zone z JOIN zdc_zone t
          ON z.localUser = t.localUser AND z.appTreeID = t.appTreeID AND z.trunk = t.trunk AND z.owner IS t.owner
          WHERE t.id = (SELECT zone FROM zdc_node WHERE uuid = ?)) ORDER BY id
        """, arguments: [trunk]
    ).map { row in
      let reason: Int = row[2]
      return OperationLine(
        kind: kinds[row[0]] ?? "?", nodeUUID: row[1],
        reason: reasons.indices.contains(reason) ? reasons[reason] : "?", detail: row[3])
    }
  }
}

extension TestDevice {
  /// Returns the uuids of all nodes below `home`, and of those in accepted trees of others.
  static func allNodes(_ transaction: ZDCReadTransaction, user: String) throws -> [String] {
    let shared = try String.fetchAll(
      transaction.database,
      sql: """
        SELECT n.uuid FROM zdc_node n JOIN zdc_zone top ON top.id = n.zone
        WHERE (n.parent IS NOT NULL OR top.zoneRoot <> substr(top.treeID, 1, 16)) AND n.zone IN (
          SELECT z.id FROM zdc_zone z JOIN zdc_local_user u ON u.id = z.localUser
          WHERE (z.owner IS NOT NULL OR z.trunk IN (3, 4)) AND u.userID = ?)
        """, arguments: [UserID(text: user).map { Data($0.bytes) }])
    return try nodes(transaction, user: user).map(\.uuid) + shared
  }

  /// Returns the uuids of nodes whose upload is held by a data conflict.
  static func heldNodes(_ transaction: ZDCReadTransaction, user: String) throws -> [String] {
    try operations(transaction, user: user).filter { $0.reason == "conflictHeld" }.map(\.nodeUUID)
  }
}
