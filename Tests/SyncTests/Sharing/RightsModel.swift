import Foundation
import GRDB
import ZDCProtocol
import ZeroDarkCloudTesting

/// The changes of members in home trees, as the server's logs have them, and the table of rights in PROTOCOL 3.9.
struct RightsModel {
  /// A commit, the access list that came with it, and the nodes with which it began its zone.
  struct Change {
    var position: AccessModel.Position
    var commit: ZoneCommit.Fields
    var list: ZoneACL.Fields?
    var nodes: [LogNode] = []
  }

  private struct Leaf {
    let parent: NodeID
    let writer: UserID
  }

  /// A put by a member.
  private struct Put {
    let position: AccessModel.Position
    let writer: UserID
    let node: NodeID
    let isBelowRoot: Bool
  }

  private var lists: [ZoneID: ZoneACL.Fields] = [:]
  private var leaves: [ZoneID: [NodeID: Leaf]] = [:]
  private var puts: [Put] = []
  private var faults: [String] = []

  /// - Parameter changes: the commits of all zones, in the server's order.
  init(_ changes: [Change]) {
    for change in changes {
      let (commit, list) = (change.commit, change.list)
      if commit.seq == 0 { begin(commit.zone, list, change.nodes) }
      apply(commit, at: change.position)
      if let list, lists[commit.zone] != nil { lists[commit.zone] = list }
    }
  }

  /// Throws if the log has a change that the list in force before it did not allow.
  func check() throws {
    guard faults.isEmpty else { throw TestFailure("the log has \(faults.joined(separator: ", "))") }
  }

  /// Returns the nodes that a member has put below the root of their zone since a position.
  func topNodes(by writer: UserID, since position: AccessModel.Position) -> Set<String> {
    Set(puts.filter { $0.writer == writer && $0.position > position && $0.isBelowRoot }.map(\.node.text))
  }

  /// A zone of a home tree begins empty, or with the nodes that the owner has split off.
  private mutating func begin(_ zone: ZoneID, _ list: ZoneACL.Fields?, _ nodes: [LogNode]) {
    guard let list, list.trunk == .home else { return }
    (lists[zone], leaves[zone]) = (list, [:])
    for node in nodes {
      leaves[zone]?[node.node] = Leaf(parent: node.parent, writer: list.owner)
    }
  }

  private mutating func apply(_ commit: ZoneCommit.Fields, at position: AccessModel.Position) {
    guard let list = lists[commit.zone] else { return }
    for operation in commit.operations {
      let isAllowed = commit.writer == list.owner || allows(operation, by: commit.writer, list)
      if !isAllowed { faults.append("\(operation) of commit \(commit.seq) in \(commit.zone.root.text)") }
      apply(operation, commit, at: position)
    }
  }

  private mutating func apply(
    _ operation: ZoneOperation, _ commit: ZoneCommit.Fields, at position: AccessModel.Position
  ) {
    switch operation {
    case .put(let put):
      leaves[commit.zone]?[put.node] = Leaf(parent: put.parent, writer: commit.writer)
      let isBelowRoot = put.parent == commit.zone.root
      puts.append(Put(position: position, writer: commit.writer, node: put.node, isBelowRoot: isBelowRoot))
    case .delete(let node, _, _), .split(let node, _, _): remove(node, in: commit.zone)
    case .acl, .retireKey, .genesisState: break
    }
  }

  private mutating func remove(_ node: NodeID, in zone: ZoneID) {
    leaves[zone]?[node] = nil
    for (child, leaf) in leaves[zone] ?? [:] where leaf.parent == node { remove(child, in: zone) }
  }

  // MARK: The table

  private func allows(_ operation: ZoneOperation, by writer: UserID, _ list: ZoneACL.Fields) -> Bool {
    let permissions = list.entry(for: writer)?.permissions ?? []
    switch operation {
    case .put(let put): return permissions.contains(.write) && allowsPut(put, by: writer, permissions, list.zone)
    case .delete(let node, _, let count):
      return permissions.contains(.write) && allowsDelete(of: node, count, by: writer, permissions, list.zone)
    case .split, .genesisState: return false
    // Lists have rules of their own: see `AccessModel`.
    case .acl, .retireKey: return true
    }
  }

  /// `R` depends on the record, not on the operation: no text may be sent with it.
  private func allowsPut(
    _ put: ZoneOperation.Put, by writer: UserID, _ permissions: ZoneACL.Permissions, _ zone: ZoneID
  ) -> Bool {
    let old = leaves[zone]?[put.node]
    let isBelowRoot = put.parent == zone.root
    if permissions.contains(.writeOnce), old != nil { return false }
    if permissions.contains(.leafsOnly), !isBelowRoot || old?.parent ?? zone.root != zone.root { return false }
    return !permissions.contains(.userOnly) || (isBelowRoot && put.node == NodeID.child(of: zone, for: writer))
  }

  private func allowsDelete(
    of node: NodeID, _ count: UInt64, by writer: UserID, _ permissions: ZoneACL.Permissions, _ zone: ZoneID
  ) -> Bool {
    guard !permissions.isDisjoint(with: [.writeOnce, .leafsOnly, .userOnly]) else { return true }
    guard count == 0, let leaf = leaves[zone]?[node] else { return false }
    if permissions.contains(.writeOnce), !permissions.contains(.burnIfSender) || leaf.writer != writer { return false }
    if permissions.contains(.leafsOnly), leaf.parent != zone.root { return false }
    return !permissions.contains(.userOnly) || node == NodeID.child(of: zone, for: writer)
  }
}

extension RightsModel.Change {
  /// Reads all commits of a server.
  static func all(of server: TestServer) throws -> [RightsModel.Change] {
    let (commits, states) = try AccessModel.read(server) { db in
      (
        try Row.fetchAll(
          db,
          sql: """
            SELECT c.feed_position, c.bytes, a.bytes, c.zone FROM commits c LEFT JOIN acls a ON a.id = c.acl
            ORDER BY c.feed_position
            """),
        try Row.fetchAll(db, sql: "SELECT zone, bytes FROM states ORDER BY zone, part")
      )
    }
    var lists: [Int64: [UInt8]] = [:]
    for row in states { lists[row[0], default: []] += [UInt8](row[1] as Data) }
    return try commits.map { row in
      var change = RightsModel.Change(position: row[0], commit: try ZoneCommit([UInt8](row[1] as Data)).fields)
      change.list = try (row[2] as Data?).map { try ZoneACL([UInt8]($0)).fields }
      if change.commit.seq == 0 { change.nodes = try lists[row[3]].map { try StateList($0).nodes } ?? [] }
      return change
    }
  }
}
