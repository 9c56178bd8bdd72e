internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers
internal import ZDCTreesystem

/// Lists a node's earlier versions, and makes one of them the newest again.
struct NodeHistory {
  let session: SyncSession

  /// Returns the versions that the server keeps, newest first.
  func versions(ofNodeID uuid: String, limit: Int) async throws -> [ZDCNodeVersion] {
    let found = try await session.database.asyncRead { transaction in
      guard let row = try transaction.nodes.node(uuid: uuid) else { throw ZDCError(.nodeNotFound) }
      return try FormerStore(transaction).versions(of: row.nodeID, zone: row.zone, limit: limit)
    }
    let read = try await FormerReader(session: session).read(found)
    return try await session.database.asyncRead { transaction in
      try read.compactMap { try version($0, uuid, transaction) }
    }
  }

  private func version(
    _ read: FormerReader.Read, _ uuid: String, _ transaction: ZDCReadTransaction
  ) throws -> ZDCNodeVersion? {
    guard let former = read.opened, let zone = try transaction.zones.zone(id: read.version.zone)?.zone else {
      return nil
    }
    let fields = former.opened.record.fields
    let target = former.content.flatMap { content in
      former.opened.contentReference.map { reference in
        ContentTarget(
          user: session.user, zone: zone, node: fields.node, reference: reference, receivedMs: content.receivedMs)
      }
    }
    return ZDCNodeVersion(
      id: read.version.record.text, nodeID: uuid, name: former.opened.name, date: Date(ms: fields.timeMs),
      authorID: fields.writer.text, isContentKept: read.state.hasContent,
      keptUntil: read.state.untilMs == 0 ? nil : Date(ms: read.state.untilMs), target: target, former: read.version,
      remoteContent: former.content)
  }

  /// Makes the content of an earlier version the node's newest one, by a queued operation. Nothing is downloaded or sent
  /// again: the next record names the content that the server still has.
  func restore(_ version: ZDCNodeVersion) async throws -> ZDCNode {
    try await session.database.asyncReadWrite { transaction in
      let before = try restorable(version, transaction)
      var row = before
      row.content = try content(of: version, over: before)
      try transaction.nodes.update(row)
      try queue(row, over: before, transaction)
      transaction.signal(.queue(localUser: session.localUser))
      let node = try session.node(row, in: transaction)
      let path = try session.path(row, in: transaction)
      try session.tell(.didDiscoverModifiedNode, row.nodeID, in: transaction) {
        try $0.didDiscoverModifiedNode(node, with: .data, at: path, transaction: transaction)
      }
      return node
    }
  }

  /// Queues the restoration. One that was not sent yet restores whatever content the row names when it is sent.
  private func queue(_ row: NodeRow, over before: NodeRow, _ transaction: ZDCReadWriteTransaction) throws {
    if let queued = try QueuedRestoration(row, transaction), !queued.isSent {
      return try queued.deleteIfReverted(row, transaction)
    }
    try QueuedRestoration.queue(for: row, over: before.content?.content.eTag, at: session.now(), transaction)
  }

  private func restorable(_ version: ZDCNodeVersion, _ transaction: ZDCReadTransaction) throws -> NodeRow {
    guard let row = try transaction.nodes.node(uuid: version.nodeID) else { throw ZDCError(.nodeNotFound) }
    guard row.isUploaded, row.nodeID == version.former.node, row.zone == version.former.zone else {
      throw ZDCError(.nodeNotUploaded)
    }
    guard try transaction.zones.zone(id: row.zone)?.mayWrite(session.user) ?? false else {
      throw ZDCCloudError(.notAllowed)
    }
    let queued = try transaction.operations.operations(node: row.id)
    guard !queued.contains(where: { $0.kind == .putData || $0.kind == .create }) else {
      throw ZDCCloudError(.conflict, detail: "other content of the node is queued; send it first")
    }
    return row
  }

  /// Returns the version's content with a number above that of the node's content now.
  private func content(of version: ZDCNodeVersion, over row: NodeRow) throws -> NodeRow.RemoteContent {
    guard let old = version.remoteContent else {
      throw ZDCCloudError(.invalidParameter, detail: "the version has no content")
    }
    guard old.content.blobID != row.content?.content.blobID else {
      throw ZDCCloudError(.invalidParameter, detail: "the node has the content of this version")
    }
    var content = old
    content.content = NodeRecord.Content(
      dataVersion: try RecordRules.version(after: row.content?.content.dataVersion ?? 0), blobID: old.content.blobID,
      cipherLength: old.content.cipherLength, contentRoot: old.content.contentRoot)
    return content
  }
}
