internal import Foundation
package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol

/// What is queued to be sent again for a node, because the server had lost it.
package struct Resending {
  package var record: [OperationRow]
  package var data: [OperationRow]

  /// Nil if nothing is.
  package init?(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws {
    let queued = try transaction.operations.operations(node: row.id).filter { $0.resend != nil }
    guard !queued.isEmpty else { return nil }
    record = queued.filter { $0.kind != .putData }
    data = queued.filter { $0.kind == .putData }
  }

  /// Whether the server's record comes before the one that it had lost, or is another one in its place. A creation takes
  /// what somebody else has created meanwhile.
  func isRecordOlder(_ fields: NodeRecord.Fields) -> Bool {
    record.contains { $0.kind == .move && fields.recordVersion <= $0.resend ?? 0 }
  }

  /// Whether the server's content comes before the one that it had lost. Content that is sent again has the next number,
  /// so what another device sent again is not older; what the app has not got cannot be sent.
  func isDataOlder(_ content: NodeRecord.Content?, mine: NodeRecord.Content?) -> Bool {
    if data.isEmpty { return mine.map { Self.isOlder(content, than: $0.dataVersion, $0.blobID) } ?? false }
    return data.contains { operation in
      guard let lost = operation.resend, operation.reason != .noDataFromApp else { return false }
      return Self.isOlder(content, than: lost, mine?.blobID)
    }
  }

  private static func isOlder(_ content: NodeRecord.Content?, than lost: UInt64, _ blob: BlobID?) -> Bool {
    guard let content else { return true }
    return content.dataVersion < lost || (content.dataVersion == lost && content.blobID != blob)
  }
}

extension ChangeApplier {
  /// The server's version of a node that is about to be sent again: what it has already is not sent.
  package mutating func settle(
    _ resending: Resending, _ before: NodeRow, _ opened: OpenedRecord, _ item: PageContents.Record, parent: NodeRow
  ) throws {
    var row = before
    let fields = opened.record.fields
    let oldPath = try places.path(before)
    let keepsData = resending.isDataOlder(fields.content, mine: before.content?.content)
    let keepsRecord = resending.isRecordOlder(fields)
    var change = RemoteChange(before: before, after: opened)
    change.data = !keepsData && fields.content != nil && before.content?.content.blobID != fields.content?.blobID
    row.absorb(opened, item)
    if keepsRecord { row.burnMs = before.burnMs }
    let isSamePlace = parent.id == before.parent && opened.secrets.name == before.name
    let isSame = isSamePlace && before.burnMs == fields.burnMs
    let namesKept = keepsData && resending.data.isEmpty && !resending.record.isEmpty
    if namesKept, Self.mayFollow(before.content, fields.content) {
      // The next record names the content that was lost.
      row.content = before.content
      try nameContent(of: row, in: resending.record)
    } else if namesKept, let lost = before.content {
      try queueLostContent(row, lost.content.dataVersion)
    }
    try settleRecord(resending.record, isNeeded: namesKept || (keepsRecord && !isSame))
    try settleData(resending, row, isNeeded: keepsData)
    if keepsRecord {
      try nodes.update(row)
      change.record = false
    } else {
      try moveToCloudPlace(&row, opened, parent: parent)
    }
    try announce(change, row, oldPath: oldPath, opened)
  }

  /// A record may name other content than the one before only with a higher number.
  private static func mayFollow(_ kept: NodeRow.ContentFacts?, _ content: NodeRecord.Content?) -> Bool {
    guard let kept else { return false }
    return content.map { $0.dataVersion < kept.content.dataVersion } ?? true
  }

  private func nameContent(of row: NodeRow, in operations: [OperationRow]) throws {
    for var operation in operations {
      operation.baseETag = row.content?.content.eTag
      try transaction.operations.update(operation)
    }
  }

  private func queueLostContent(_ row: NodeRow, _ dataVersion: UInt64) throws {
    try LostContent(session: session, zone: row.zone, transaction: transaction).queue(row, dataVersion: dataVersion)
  }

  private func settleRecord(_ operations: [OperationRow], isNeeded: Bool) throws {
    if isNeeded { return }
    for operation in operations { try transaction.operations.delete(id: operation.id) }
  }

  /// What the server has is known: content that goes over it is based on it, that of the app too.
  private func settleData(_ resending: Resending, _ row: NodeRow, isNeeded: Bool) throws {
    guard isNeeded else {
      for operation in resending.data { try transaction.operations.delete(id: operation.id) }
      return
    }
    for var operation in try transaction.operations.operations(node: row.id) where operation.kind == .putData {
      operation.baseETag = row.content?.content.eTag
      try transaction.operations.update(operation)
    }
  }
}
