import Foundation
import GRDB
import Synchronization
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// A device with a local user and no network, to test the effects of the app's transactions on the database.
final class CloudFixture: Sendable {
  static let treeID = "com.example.test"

  let files: DatabaseFixture
  let zdc: ZeroDarkCloud
  let userID: String

  init(journalLimits: ZDCJournalLimits = ZDCJournalLimits()) async throws {
    files = try DatabaseFixture()
    var config = files.config
    let time = Clock()
    config.clock = { time.tick() }
    config.journalLimits = journalLimits
    zdc = try ZeroDarkCloud(delegate: NoOpDelegate(), config: config)
    var database = ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key)
    database.register(Note.self, inCollection: "notes")
    try zdc.unlockOrCreateDatabase(database)
    userID = try await Self.addUser(zdc)
  }

  /// A clock that advances at each reading, so that times are ordered.
  private final class Clock: Sendable {
    private let now = Mutex<UInt64>(1_700_000_000_000)

    func tick() -> UInt64 {
      now.withLock { now in
        now += 1
        return now
      }
    }
  }

  /// Stores an account as `createAccount` would, without a server.
  static func addUser(_ zdc: ZeroDarkCloud) async throws -> String {
    let birth = try NewAccount(accessKey: .random(), appTreeID: treeID, timeMs: 1)
    var chain = Bundle.Writer()
    chain.append(link: birth.genesis.bytes)
    let secrets = LocalUserSecrets(
      accessKey: birth.accessKey, deviceID: .random(), deviceKey: .random(), origin: "http://127.0.0.1:8080",
      appTreeID: treeID, keyringBlob: birth.keyringBlob)
    let row = LocalUserRow(
      userID: birth.userID, state: .ready, chain: chain.bytes, secrets: secrets, createdMs: 1)
    let bundles = birth.trunks.map { trunk -> [UInt8] in
      var bundle = Bundle.Writer()
      bundle.append(record: trunk.root.bytes)
      bundle.append(grant: trunk.grant.bytes)
      bundle.append(acl: trunk.acl.bytes)
      bundle.append(commit: trunk.commit.bytes)
      return bundle.bytes
    }
    try await zdc.rw.write { transaction in
      var inserted = row
      try transaction.localUsers.insert(&inserted)
      let keys = try UserKeys(inserted)
      try TrunkRows(transaction: transaction, localUser: inserted.id, appTreeID: treeID, owner: row.userID)
        .insertGenesis(bundles, keys: keys)
    }
    return birth.userID.text
  }

  // MARK: Transactions

  @discardableResult
  func write<T: Sendable>(_ body: @Sendable @escaping (ZDCCloudTransaction) throws -> T) async throws -> T {
    try await zdc.rw.write { [zdc, userID] transaction in
      try body(try #require(zdc.cloudTransaction(transaction, forLocalUserID: userID)))
    }
  }

  func read<T: Sendable>(_ body: @Sendable @escaping (ZDCCloudReadTransaction) throws -> T) async throws -> T {
    try await zdc.rw.asyncRead { [zdc, userID] transaction in
      try body(try #require(zdc.cloudTransaction(transaction, forLocalUserID: userID)))
    }
  }

  /// Creates the nodes in order.
  func create(_ paths: String...) async throws {
    try await write { cloud in
      for text in paths {
        let path = try #require(ZDCTreesystemPath(text))
        try cloud.createNode(withPath: path)
      }
    }
  }

  // MARK: State after a push or a pull

  /// Empties the queue, and marks every node as stored in the cloud at its current path, with content of that version.
  func pretendAllPushed(dataVersion: UInt64 = 1) async throws {
    try await write { cloud in
      for operation in try cloud.queue() { try cloud.operations.delete(id: operation.id) }
      let zones = try cloud.transaction.zones.zones(localUser: cloud.localUser)
      for zone in zones {
        var rows: [NodeRow] = []
        try cloud.nodes.forEach(zone: zone.id) { rows.append($0) }
        for row in rows where row.parent != nil { try cloud.pretendPushed(row, dataVersion: dataVersion) }
      }
    }
  }

  /// Marks the node's operations as part of a request without an answer.
  func pretendInFlight(_ path: String) async throws {
    try await write { cloud in
      let row = try cloud.row(path: path)
      for operation in try cloud.operations.operations(node: row.id) {
        try cloud.operations.setState(.inFlight, reason: .inFlight, id: operation.id)
        try cloud.transaction.database.execute(
          sql: "INSERT INTO zdc_in_flight_put (operation, zone, node) VALUES (?, ?, ?)",
          arguments: [operation.id, row.zone, row.id])
      }
    }
  }

  // MARK: Dumps

  /// Returns the local tree, one line per node, sorted.
  func tree() async throws -> String {
    try await read { cloud in
      var lines: [String] = []
      for trunk in [ZDCTreesystemTrunk.home, .prefs] {
        guard let root = cloud.trunkNode(trunk) else { continue }
        ZDCNodeManager.sharedInstance.recursiveEnumerateNodes(
          withParentID: root.uuid, transaction: cloud.transaction
        ) { node, parents, _, _ in
          let path = (parents + [node]).compactMap(\.name)
          lines.append(ZDCTreesystemPath(pathComponents: path, trunk: trunk).fullPath())
        }
      }
      return lines.sorted().joined(separator: "\n")
    }
  }

  /// Returns the queue in order, one line per operation: number, kind, path ("-" if the node was deleted), and the
  /// numbers of the operations it waits for.
  func queue() async throws -> String {
    try await read { cloud in
      let queue = try cloud.queue()
      let numbers = Dictionary(uniqueKeysWithValues: queue.enumerated().map { ($1.id, $0 + 1) })
      return try queue.map { operation in
        let row = try operation.node.flatMap { try cloud.transaction.nodes.node(id: $0) }
        let path = try row.map { try cloud.transaction.zdcPath($0).relativePath() } ?? "-"
        let waits = try cloud.transaction.operations.dependencies(of: operation.id).compactMap { numbers[$0] }
        let suffix = waits.isEmpty ? "" : " after \(waits.map(String.init).joined(separator: ","))"
        return "\(numbers[operation.id] ?? 0) \(operation.kind) \(path)\(suffix)"
      }.joined(separator: "\n")
    }
  }
}

extension ZDCCloudReadTransaction {
  func row(path text: String) throws -> NodeRow {
    let path = try #require(ZDCTreesystemPath(text))
    return try #require(try row(at: path))
  }

  func at(_ text: String) throws -> ZDCNode {
    let path = try #require(ZDCTreesystemPath(text))
    return try #require(node(path: path))
  }
}

extension ZDCCloudTransaction {
  func pretendPushed(_ row: NodeRow, dataVersion: UInt64) throws {
    guard let parent = try row.parent.flatMap({ try nodes.nodeID(of: $0) }) else { return }
    var row = row
    row.cloud = NodeRow.RemoteState(
      recordVersion: (row.cloud?.recordVersion ?? 0) + 1, recordHash: .zero, parent: parent, name: row.name,
      nameTag: row.nameTag, writer: .zero, receivedMs: 1_000)
    row.content = NodeRow.RemoteContent(
      content: NodeRecord.Content(dataVersion: dataVersion, blobID: .random(), cipherLength: 1, contentRoot: .zero),
      secrets: ContentSecrets(
        key: .random(), sizes: ContentSizes(metadata: 1, thumbnail: 0, data: 3), thumbnailTag: .zero),
      writer: .zero, timeMs: 1, receivedMs: 2_000)
    try nodes.update(row)
  }
}

extension ZDCCloudTransaction {
  /// Inserts the log's entry for a node, with its record read or not.
  func pretendLogged(_ row: NodeRow, isRead: Bool) throws {
    try transaction.database.execute(
      sql: """
        INSERT INTO zdc_leaf (zone, node, parent, record, prev, putSeq, keyGen, parentKeyGen, writer, writerGen, pending)
        VALUES (?, ?, ?, ?, ?, 1, 1, 1, ?, 1, ?)
        """,
      arguments: [
        row.zone, row.nodeID.data, NodeID.random().data, RecordHash.zero.data, RecordHash.zero.data, UserID.zero.data,
        isRead ? 0 : 1,
      ])
  }
}

extension ZeroDarkCloud {
  var rw: ZDCDatabaseConnection {
    get throws { try #require(databaseManager).rwDatabaseConnection }
  }
}

/// Returns the code of the ``ZDCCloudError`` that `body` throws; nil if it throws something else or nothing.
func cloudCode(_ body: () throws -> Void) -> ZDCCloudError.Code? {
  do { try body() } catch { return (error as? ZDCCloudError)?.code }
  return nil
}
