import Foundation
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Publishes nodes with content in a user's home as the push engine would: sealed, in a signed commit, on the real
/// server.
struct Publisher {
  struct Item: Sendable {
    var data: [UInt8]
    var metadata: [UInt8] = []
    var thumbnail: [UInt8] = []
    /// A hostile writer's change to the ciphertext. Root and record match the changed ciphertext.
    var forge: @Sendable (inout [UInt8]) -> Void = { _ in }
    /// A hostile writer's false sizes; `claimedLength` is a false length of the ciphertext.
    var claim: @Sendable (inout ContentSizes) -> Void = { _ in }
    var claimedLength: UInt64?
  }

  /// Sealed content as its writer, honest or not, publishes it.
  struct Sealed {
    let blobID: BlobID
    let bytes: [UInt8]
    let secrets: ContentSecrets

    init(_ item: Item) throws {
      let sealed = try ContentSealer.sealSmall(
        metadata: item.metadata, thumbnail: item.thumbnail, data: item.data, padding: .none)
      blobID = sealed.blobID
      var (bytes, secrets) = (sealed.bytes, sealed.secrets)
      item.forge(&bytes)
      item.claim(&secrets.sizes)
      (self.bytes, self.secrets) = (bytes, secrets)
    }

    var cipherLength: UInt64 { UInt64(bytes.count) }

    var content: NodeRecord.Content {
      let leaves = (0..<ContentGeometry.leafCount(cipherLength: cipherLength)).map { index in
        let range = ContentGeometry.leafRange(index, cipherLength: cipherLength)
        return MerkleTree.leafHash(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
      }
      return NodeRecord.Content(
        dataVersion: 1, blobID: blobID, cipherLength: cipherLength,
        contentRoot: ContentRoot(reinterpreting: MerkleTree.root(leafHashes: leaves)))
    }
  }

  let device: NetworkDevice
  let user: ZDCLocalUser

  init(_ device: NetworkDevice) async throws {
    self.device = device
    user = try await device.users.createAccount().localUser
  }

  func publish(_ items: [Item]) async throws -> [ZDCNode] {
    let api = try await device.api(user)
    let keys = try await device.users.keys(for: ZDCLocalUserManager.userID(user.uuid))
    let zones = try await device.zones(of: user)
    guard let zone = zones.first, let head = zone.head else { throw ZDCError(.corruptDatabase) }
    let row = try await device.connection.asyncRead { try $0.nodes.root(zone: zone.id) }
    guard let root = row else { throw ZDCError(.corruptDatabase) }
    var bundle = Bundle.Writer()
    var rows: [NodeRow] = []
    var operations: [ZoneOperation] = []
    for (index, item) in items.enumerated() {
      let node = NodeID.random()
      let sealed = try Sealed(item)
      if sealed.bytes.count <= Limits.inlineContentBytes {
        bundle.append(content: sealed.bytes, blob: sealed.blobID)
      } else {
        try await upload(sealed, zone: zone.zone, node: node, api)
      }
      let (record, honest) = try make(
        node, name: "\(head.seq)-\(index)", sealed, zone: zone, root: root, keys: keys)
      var row = honest
      if let length = item.claimedLength { row.content?.content.cipherLength = length }
      bundle.append(record: record.bytes)
      operations.append(.put(ZoneOperation.Put(record)))
      rows.append(row)
    }
    let fields = ZoneCommit.Fields(
      zone: zone.zone, seq: head.seq + 1, prev: head.hash, aclHash: head.acl.hash, writer: keys.userID,
      writerGen: keys.signGen, timeMs: 1, operations: operations)
    let commit = try ZoneCommit(fields) { try keys.signingKey.sign(label: "commit", message: $0) }
    bundle.append(commit: commit.bytes)
    guard case .accepted = try await api.push(bundle.bytes) else { throw NotAccepted() }
    return try await store(rows, zone, ZoneHead(zone: zone.zone, seq: head.seq + 1, hash: commit.hash, acl: head.acl))
  }

  private func upload(_ sealed: Sealed, zone: ZoneID, node: NodeID, _ api: ServerAPI) async throws {
    _ = try await api.openBlob(
      BlobTicketRequest(
        blobID: sealed.blobID, treeID: zone.tree, nodeID: node, cipherLength: sealed.cipherLength))
    for index in 0..<ContentGeometry.partCount(cipherLength: sealed.cipherLength) {
      let range = ContentGeometry.partRange(index, cipherLength: sealed.cipherLength)
      let part = Array(sealed.bytes[Int(range.lowerBound)..<Int(range.upperBound)])
      let hash = MerkleTree.partHash(part, part: index, cipherLength: sealed.cipherLength)
      try await api.putPart(sealed.blobID, index: index, bytes: part, hash: hash)
    }
    _ = try await api.completeBlob(sealed.blobID)
  }

  private func make(
    _ node: NodeID, name: String, _ sealed: Sealed, zone: ZoneRow, root: NodeRow, keys: UserKeys
  ) throws -> (NodeRecord, NodeRow) {
    let folded = try NameFolding.fold(name)
    let key = NodeKey.random()
    let content = sealed.content
    let record = try RecordSealer.seal(
      RecordDraft(
        tree: zone.zone.tree, node: node, parent: zone.zone.root, key: key, parentLink: .keys(root.parentKeys),
        secrets: RecordPrivate(name: folded, createdMs: 1, content: sealed.secrets), content: content,
        writer: keys.userID, writerGen: keys.signGen, timeMs: 1))
    var row = NodeRow(
      uuid: UUID().uuidString, zone: zone.id, nodeID: node, parent: root.id, depth: 1,
      nameTag: record.fields.nameTag, name: folded.utf8, key: key, keyGen: 1, createdMs: 1)
    row.cloud = NodeRow.RemoteState(
      recordVersion: 1, recordHash: record.hash, parent: zone.zone.root, name: folded.utf8,
      nameTag: record.fields.nameTag, writer: keys.userID, receivedMs: 5)
    row.content = NodeRow.RemoteContent(
      content: content, secrets: sealed.secrets, writer: keys.userID, timeMs: 1, receivedMs: 5_000)
    return (record, row)
  }

  private func store(_ rows: [NodeRow], _ zone: ZoneRow, _ head: ZoneHead) async throws -> [ZDCNode] {
    try await device.connection.asyncReadWrite { [user] transaction in
      var zone = zone
      zone.head = head
      try transaction.zones.update(zone)
      return try rows.map { row in
        var row = row
        try transaction.nodes.insert(&row)
        return ZDCNode(uuid: row.uuid, localUserID: user.uuid, treeID: user.treeID, nodeID: row.nodeID)
      }
    }
  }
}

/// Returns pseudorandom bytes without nearby repetitions.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
  return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    for index in 0..<count {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      buffer[index] = UInt8(truncatingIfNeeded: state >> 56)
    }
    filled = count
  }
}

private struct NotAccepted: Error {}
