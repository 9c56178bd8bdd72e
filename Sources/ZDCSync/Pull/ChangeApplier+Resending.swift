internal import Foundation
package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol

/// The operations that send a node again after the server had lost it.
package struct Resending {
  package var record: [OperationRow]
  package var data: [OperationRow]

  /// Returns nil if no operation sends the node again.
  package init?(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws {
    let queued = try transaction.operations.operations(node: row.id).filter { $0.resend != nil && $0.kind != .modify }
    guard !queued.isEmpty else { return nil }
    record = queued.filter { $0.kind != .putData }
    data = queued.filter { $0.kind == .putData }
  }

  /// Returns whether the server's record precedes the lost one, or replaces it. A creation accepts a node that another
  /// device has created in the meantime.
  func isRecordOlder(_ fields: NodeRecord.Fields) -> Bool {
    record.contains { $0.kind == .move && fields.recordVersion <= $0.resend ?? 0 }
  }

  /// Returns whether the server's content precedes the lost one. Content that is sent again gets the next version
  /// number, so content that another device sent again is not older. Content that the app no longer has cannot be sent.
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
  /// Merges the server's version of a node that is about to be sent again, and drops operations for data that the
  /// server already has.
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
    row.absorb(opened, item, user: session.user)
    if keepsRecord { row.burnMs = before.burnMs }
    let isSamePlace = parent.id == before.parent && opened.secrets.name == before.name
    let isSame = isSamePlace && before.burnMs == fields.burnMs
    let namesKept = keepsData && resending.data.isEmpty && !resending.record.isEmpty
    if namesKept, Self.mayFollow(before.content, fields.content) {
      // The next record names the lost content.
      row.content = before.content
      try nameContent(of: row, in: resending.record)
    } else if namesKept, let lost = before.content {
      try queueLostContent(row, lost.content.dataVersion)
    }
    let isRecordNeeded = namesKept || (keepsRecord && !isSame) || row.isBurnDateChanged
    try settleRecord(resending.record, isNeeded: isRecordNeeded)
    try settleData(resending, row, isNeeded: keepsData)
    if keepsRecord {
      try nodes.update(row)
      change.record = false
    } else {
      try moveToCloudPlace(&row, opened, parent: parent)
    }
    announced += try places.announce(change, row, oldPath: oldPath)
  }

  /// Returns whether a record may name the kept content. Content different from the previous record's needs a higher
  /// version number.
  private static func mayFollow(_ kept: NodeRow.RemoteContent?, _ content: NodeRecord.Content?) -> Bool {
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

  /// Rebases all queued content, including the app's own edits, on the server's version, which is now known.
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
