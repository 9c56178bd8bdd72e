internal import Foundation
package import GRDB
package import ZDCProtocol

/// The delegate's calls that threw and are to be made again (zdc_delegate_failure), one row for each node and call.
package final class DelegateFailureStore: TransactionCache {
  package typealias Call = ZDCDelegateFailure.Call

  /// The step that was rolled back with the call, and has to be repeated. If calls failed in several steps, the highest
  /// one is kept.
  package enum Part: Int64, Sendable {
    /// The delegate is notified of the outcome of a push.
    case push = 0
    /// A name that has become free is given back.
    case name = 1
    /// A record, which is pending as long as it has not been applied.
    case record = 2
    /// The cloud has deleted the node, and the app has it still.
    case deletion = 3
    /// The zone's access list has changed. The node is the zone's root.
    case access = 4
  }

  package struct Failure {
    package var node: NodeID
    package var call: Call
    package var part: Part
    package var error: String
    package var times: Int
    package var firstMs: UInt64
    package var lastMs: UInt64
    /// Of a deletion: when the server did it, 0 if that is not known.
    package var receivedMs: UInt64
  }

  private let db: Database
  private let nowMs: UInt64
  /// Zones of which it is known whether they have any: a thousand records ask, and nearly none has.
  private var knownEmpty: [Int64: Bool] = [:]

  package init(db: Database, nowMs: UInt64) {
    self.db = db
    self.nowMs = nowMs
  }

  package func invalidate() { knownEmpty = [:] }

  // MARK: Reading

  package func isEmpty(zone: Int64) throws -> Bool {
    if let known = knownEmpty[zone] { return known }
    let isEmpty = try !db.hasRow("SELECT 1 FROM zdc_delegate_failure WHERE zone = ?", [zone])
    knownEmpty[zone] = isEmpty
    return isEmpty
  }

  /// Those that wait longest first.
  package func failures(zone: Int64, limit: Int) throws -> [Failure] {
    try isEmpty(zone: zone) ? [] : fetch("WHERE zone = ? ORDER BY lastMs, id LIMIT ?", [zone, limit])
  }

  package func failures(zone: Int64, node: NodeID) throws -> [Failure] {
    try isEmpty(zone: zone) ? [] : fetch("WHERE zone = ? AND nodeID = ? ORDER BY id", [zone, node.data])
  }

  /// Nodes that the cloud has deleted and the app has still.
  package func deletedNodes(zone: Int64) throws -> [NodeID] {
    if try isEmpty(zone: zone) { return [] }
    let failures = try fetch("WHERE zone = ? AND part = ? ORDER BY id", [zone, Part.deletion.rawValue])
    var known: Set<NodeID> = []
    return failures.map(\.node).filter { known.insert($0).inserted }
  }

  private func fetch(_ condition: String, _ arguments: StatementArguments) throws -> [Failure] {
    var failures: [Failure] = []
    let columns = "nodeID, call, error, times, firstMs, lastMs, receivedMs, part"
    try db.forEachRow("SELECT \(columns) FROM zdc_delegate_failure \(condition)", arguments) { row in
      // A newer version of the framework may have kept it.
      guard let call = Call(rawValue: row[1]), let part = Part(rawValue: row[7]) else { return }
      failures.append(
        Failure(
          node: try NodeID(row, 0), call: call, part: part, error: row[2], times: row[3],
          firstMs: row.unsigned(4) ?? 0, lastMs: row.unsigned(5) ?? 0, receivedMs: row.unsigned(6) ?? 0))
    }
    return failures
  }

  // MARK: Writing

  /// - Parameter receivedMs: of a deletion; that of the first time stays.
  package func record(_ error: DelegateError, zone: Int64, node: NodeID, part: Part, receivedMs: UInt64?) throws {
    knownEmpty[zone] = false
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_delegate_failure (zone, nodeID, call, error, times, firstMs, lastMs, receivedMs, part)
        VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5, ?6, ?7)
        ON CONFLICT (zone, nodeID, call) DO UPDATE SET error = ?4, times = times + 1, lastMs = ?5,
        receivedMs = MAX(receivedMs, ?6), part = MAX(part, ?7)
        """)
    let kind = "\(type(of: error.underlying))"
    try statement.execute(arguments: [
      zone, node.data, error.call.rawValue, kind, nowMs.stored, (receivedMs ?? 0).stored, part.rawValue,
    ])
  }

  /// The app was notified of everything about the node.
  ///
  /// - Parameter isPulled: whether only pulled changes were delivered. Pushed changes may still be pending.
  package func forget(zone: Int64, node: NodeID, isPulled: Bool) throws {
    if try isEmpty(zone: zone) { return }
    // A record of a zone's root does not replace the notification about its access list.
    let parts = isPulled ? "NOT IN (\(Part.push.rawValue), \(Part.access.rawValue))" : "= \(Part.push.rawValue)"
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_delegate_failure WHERE zone = ? AND nodeID = ? AND part \(parts)")
    try statement.execute(arguments: [zone, node.data])
  }

  /// The app was notified of the zone's access list.
  package func forgetAccess(zone: Int64, node: NodeID) throws {
    if try isEmpty(zone: zone) { return }
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_delegate_failure WHERE zone = ? AND nodeID = ? AND part = \(Part.access.rawValue)")
    try statement.execute(arguments: [zone, node.data])
  }

  /// Its name is correct. Other pending notifications about the node remain.
  package func forgetName(zone: Int64, node: NodeID) throws {
    if try isEmpty(zone: zone) { return }
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_delegate_failure WHERE zone = ? AND nodeID = ? AND part = ?")
    try statement.execute(arguments: [zone, node.data, Part.name.rawValue])
  }
}

extension ZDCReadTransaction {
  package var delegateFailures: DelegateFailureStore {
    cached { DelegateFailureStore(db: database, nowMs: context.clock()) }
  }
}
