internal import Foundation
internal import GRDB
package import ZDCProtocol
internal import ZeroDarkCloud

/// A snapshot of everything on a device that a lie must not change, as comparable text.
///
/// ```swift
/// let before = try await DeviceState(of: b)
/// …
/// let losses = try await DeviceState(of: b).losses(since: before, reference: honest)
/// #expect(losses.isEmpty)
/// ```
package struct DeviceState: Sendable {
  /// A security event and which IDs it names.
  package struct Event: Sendable, Hashable {
    package let code: String
    package let hasZone: Bool
    package let hasNode: Bool
    package let hasUser: Bool
  }

  struct NodeLine: Sendable, Hashable {
    /// All columns except `quarantine` and `sealed`, which is sealed again with every write. The tree shows its
    /// plaintext.
    var whole: String
    /// The cloud state of the node.
    var cloud: String
  }

  package let events: [Event]
  /// The queue in order: kind, node and sealed part of each operation.
  package let operations: [String]
  /// Error codes of frozen zones, by zone.
  package let frozen: [String: String]
  /// Error codes of nodes whose newest version could not be opened, by node.
  package let quarantined: [String: String]
  let accounts: [String]
  let pins: [String: String]
  let leaves: [String: String]
  let nodes: [String: NodeLine]
  /// The calls to the delegate.
  let calls: [String]
  /// Sizes of the device's files except for the database, by path.
  let files: [String: Int]
  /// The tree with the content that the app has.
  package let tree: String

  /// The roots of the zones whose head the device has pinned.
  package let pinnedZones: Set<NodeID>

  package init(of device: TestDevice) async throws {
    let tables = try await device.database.read { try Tables($0.database) }
    events = tables.events
    operations = tables.operations
    frozen = tables.frozen
    quarantined = tables.quarantined
    pinnedZones = tables.pinnedZones
    (accounts, pins, leaves, nodes) = (tables.accounts, tables.pins, tables.leaves, tables.nodes)
    calls = device.recorder.lines
    files = try Self.files(in: device.folder)
    tree = device.localUserIDs.isEmpty ? "" : try await device.tree(versions: false)
  }

  private static func files(in folder: URL) throws -> [String: Int] {
    var files: [String: Int] = [:]
    let keys: [URLResourceKey] = [.isRegularFileKey, .fileSizeKey]
    guard let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: keys) else { return files }
    for case let url as URL in all where !url.lastPathComponent.contains(".sqlite") {
      let values = try url.resourceValues(forKeys: Set(keys))
      if values.isRegularFile == true { files[url.path] = values.fileSize ?? 0 }
    }
    return files
  }

  // MARK: Comparing

  /// Returns everything that was lost, or was accepted unverified, since `before`.
  ///
  /// Changes that the honest reference has too are allowed, because a verified part of the log stays valid.
  /// - Parameters:
  ///   - reference: An honest twin that has pulled and downloaded the same.
  ///   - log: Hashes of commits that an authorized writer signed. A pin may be any of them, whatever their records are.
  package func losses(since before: DeviceState, reference: DeviceState, log: Set<String> = []) -> [String] {
    var losses: [String] = []
    if accounts != before.accounts { losses.append("accounts changed") }
    if operations != before.operations { losses.append("queue: \(before.operations) became \(operations)") }
    let followed = pins.filter { zone, pin in
      pin != before.pins[zone] && pin != reference.pins[zone] && log.contains { pin.contains($0) }
    }
    losses += Self.strays(pins.without(followed), before.pins.without(followed), reference.pins, "pin")
    if followed.isEmpty { losses += Self.strays(leaves, before.leaves, reference.leaves, "leaf") }
    losses += nodeLosses(since: before, reference: reference)
    let honest = Set(before.calls + reference.calls)
    for call in calls where !honest.contains(call) { losses.append("the delegate heard: \(call)") }
    let shown = Set(Self.lines(before.tree) + Self.lines(reference.tree))
    let paths = Set(shown.map { $0.split(separator: " ")[0] + "  ?" })
    for line in Self.lines(tree) where !shown.contains(line) && !paths.contains(line) {
      losses.append("the app shows: \(line)")
    }
    for (path, size) in before.files where files[path] != size { losses.append("file changed: \(path)") }
    return losses
  }

  private func nodeLosses(since before: DeviceState, reference: DeviceState) -> [String] {
    var losses: [String] = []
    for (id, line) in nodes where line.whole != before.nodes[id]?.whole && line.cloud != reference.nodes[id]?.cloud {
      losses.append("node \(id): \(before.nodes[id]?.cloud ?? "none") became \(line.cloud)")
    }
    for id in before.nodes.keys where nodes[id] == nil && reference.nodes[id] != nil {
      losses.append("node \(id) is gone")
    }
    return losses
  }

  private static func strays(
    _ now: [String: String], _ before: [String: String], _ reference: [String: String], _ what: String
  ) -> [String] {
    Set(now.keys).union(before.keys).sorted().compactMap { key in
      now[key] == before[key] || now[key] == reference[key]
        ? nil : "\(what) \(key): \(before[key] ?? "none") became \(now[key] ?? "none")"
    }
  }

  private static func lines(_ text: String) -> [Substring] { text.split(separator: "\n") }
}

extension DeviceState {
  fileprivate struct Tables: Sendable {
    var events: [Event] = []
    var operations: [String] = []
    var frozen: [String: String] = [:]
    var quarantined: [String: String] = [:]
    var accounts: [String] = []
    var pins: [String: String] = [:]
    var pinnedZones: Set<NodeID> = []
    var leaves: [String: String] = [:]
    var nodes: [String: NodeLine] = [:]

    init(_ db: Database) throws {
      accounts = try Self.rows(db, "SELECT id, userID, state, hex(chain) FROM zdc_local_user ORDER BY id")
      accounts += try Self.rows(db, "SELECT * FROM zdc_user ORDER BY userID")
      operations = try Self.rows(
        db, "SELECT id, uuid, kind, nodeUUID, hex(nodeID), hex(sealed), baseETag FROM zdc_operation ORDER BY id")
      events = try Row.fetchAll(
        db, sql: "SELECT code, zone, nodeID, userID FROM zdc_security_event ORDER BY id"
      ).map { row in
        Event(
          code: row["code"], hasZone: row.hasNull(atIndex: 1) == false, hasNode: row.hasNull(atIndex: 2) == false,
          hasUser: row.hasNull(atIndex: 3) == false)
      }
      try readZones(db)
      try readNodes(db)
    }

    private mutating func readZones(_ db: Database) throws {
      let pinned = try Data.fetchAll(db, sql: "SELECT zoneRoot FROM zdc_zone WHERE headSeq IS NOT NULL")
      pinnedZones = Set(pinned.compactMap { NodeID($0) })
      let sql = "SELECT hex(zoneRoot), headSeq, hex(headHash), hex(acl), hex(retired), frozen FROM zdc_zone"
      for row in try Row.fetchAll(db, sql: sql) {
        let zone: String = row[0]
        pins[zone] = Self.text(row, 1..<5)
        if let code: String = row[5] { frozen[zone] = code }
      }
      let leafSQL = """
        SELECT hex(zoneRoot) || '/' || hex(node), hex(parent), hex(record), hex(prev), putSeq, keyGen, parentKeyGen,
        hex(writer), writerGen FROM zdc_leaf JOIN zdc_zone ON zdc_zone.id = zdc_leaf.zone
        """
      for row in try Row.fetchAll(db, sql: leafSQL) { leaves[row[0]] = Self.text(row, 1..<9) }
    }

    private mutating func readNodes(_ db: Database) throws {
      let sql = """
        SELECT hex(nodeID), recordVersion, hex(recordHash), hex(cloudParent), dataVersion, hex(blobID),
        hex(contentRoot), quarantine, zdc_node.* FROM zdc_node
        """
      for row in try Row.fetchAll(db, sql: sql) {
        let id: String = row[0]
        let names = Array(row.columnNames)
        let whole = (8..<row.count).filter { !["quarantine", "sealed"].contains(names[$0]) }.map {
          Self.text(row, $0..<$0 + 1)
        }
        .joined(separator: " ")
        nodes[id] = NodeLine(whole: whole, cloud: Self.text(row, 1..<7))
        if let code: String = row[7] { quarantined[id] = code }
      }
    }

    private static func rows(_ db: Database, _ sql: String) throws -> [String] {
      try Row.fetchAll(db, sql: sql).map { text($0, 0..<$0.count) }
    }

    private static func text(_ row: Row, _ columns: Range<Int>) -> String {
      columns.map { column in
        switch (row[column] as DatabaseValue).storage {
        case .null: "-"
        case .int64(let value): String(value)
        case .double(let value): String(value)
        case .string(let value): value
        case .blob(let data): hexadecimal(data)
        }
      }.joined(separator: " ")
    }
  }
}

extension [String: String] {
  fileprivate func without(_ others: [String: String]) -> [String: String] { filter { others[$0.key] == nil } }
}

extension Row {
  fileprivate func hasNull(atIndex index: Int) -> Bool { (self[index] as DatabaseValue).isNull }
}
