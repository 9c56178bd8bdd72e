internal import Foundation
internal import GRDB
internal import ZDCProtocol
internal import ZDCServerSQLite

extension TestServer {
  /// Returns the server's data as text: accounts, and their trees as far as the server can see them. Nodes are numbered
  /// in the order in which they were added.
  ///
  /// ```
  /// account 1: 2 devices
  ///   home: seq 3, 2 nodes
  ///     n1 v1
  ///       n2 v2, content 372
  /// ```
  public func dump() throws -> String {
    try read { db in
      let users = try Row.fetchAll(db, sql: "SELECT id FROM users ORDER BY id")
      var labels = NodeLabels()
      return try users.enumerated().flatMap { index, row -> [String] in
        let id: Int64 = row[0]
        let devices = try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM devices WHERE user = ?", arguments: [id]) ?? 0
        return ["account \(index + 1): \(devices) devices"] + (try trees(of: id, db, &labels))
      }.joined(separator: "\n")
    }
  }

  /// Returns the number of live nodes, without the roots of trunks.
  ///
  /// ```swift
  /// try await a.sync()
  /// #expect(try server.nodeCount() == 1)
  /// ```
  public func nodeCount() throws -> Int {
    try read { db in
      try Int.fetchOne(
        db, sql: "SELECT (SELECT COUNT(*) FROM nodes) - (SELECT COUNT(*) FROM zones)") ?? 0
    }
  }

  /// Returns the number of commits in all logs, including the genesis commits.
  package func commitCount() throws -> Int {
    try read { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM commits") ?? 0 }
  }

  func read<T>(_ body: (Database) throws -> T) throws -> T {
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    let queue = try DatabaseQueue(
      path: folder.appendingPathComponent("zdc.sqlite").path, configuration: configuration)
    defer { closeQuietly(queue) }
    return try queue.read(body)
  }

  /// Closes a connection. Errors are ignored, because the connection only reads.
  private func closeQuietly(_ queue: DatabaseQueue) { try? queue.close() }

  private struct NodeLabels {
    var known: [Data: Int] = [:]

    mutating func label(_ node: Data) -> String {
      let number = known[node] ?? known.count + 1
      known[node] = number
      return "n\(number)"
    }
  }

  private func trees(of user: Int64, _ db: Database, _ labels: inout NodeLabels) throws -> [String] {
    let zones = try Row.fetchAll(
      db,
      sql: """
        SELECT z.id, z.root, z.seq, t.trunk FROM zones z JOIN trees t ON t.id = z.tree
        WHERE t.owner = ? ORDER BY t.id, z.id
        """, arguments: [user])
    var lines: [String] = []
    for zone in zones {
      let seq: Int64 = zone[2]
      guard seq > 0 else { continue }
      let nodes = try self.nodes(of: zone[0], db)
      let trunk = Trunk(rawValue: zone[3]).map { "\($0)" } ?? "?"
      lines.append("  \(trunk): seq \(seq), \(nodes.values.joined().count) nodes")
      add(below: zone[1], nodes, indent: "    ", to: &lines, &labels)
    }
    return lines
  }

  private struct Node {
    var id: Data
    var text: String
  }

  private func nodes(of zone: Int64, _ db: Database) throws -> [Data: [Node]] {
    let root = try Data.fetchOne(db, sql: "SELECT root FROM zones WHERE id = ?", arguments: [zone])
    var children: [Data: [Node]] = [:]
    for node in try StoredNode.all(inZone: zone, db) where Data(node.id.bytes) != root {
      let version = try NodeRecord(node.record).fields.recordVersion
      let content = node.contentBytes.map { ", content \($0)" } ?? ""
      children[Data(node.parent.bytes), default: []].append(
        Node(id: Data(node.id.bytes), text: " v\(version)\(content)"))
    }
    return children
  }

  private func add(
    below parent: Data, _ nodes: [Data: [Node]], indent: String, to lines: inout [String], _ labels: inout NodeLabels
  ) {
    for node in nodes[parent] ?? [] {
      lines.append(indent + labels.label(node.id) + node.text)
      add(below: node.id, nodes, indent: indent + "  ", to: &lines, &labels)
    }
  }
}
