internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport
package import ZDCTransfers
internal import ZDCTreesystem

/// The app's answer to a request for a node's content.
package struct ContentAnswer: Sendable {
  package var node: Int64
  package var nodeUUID: String
  package var nodeID: NodeID
  /// The operations that were queued when the app was asked.
  package var covers: [Int64]
  /// The same operations, in the form that the progress manager uses.
  package var uploads: [UploadProgress.Operation]
  /// The version that the first operation was based on at that time.
  package var baseETag: String?
  package var data: ZDCData
  package var metadata: ZDCData?
  package var thumbnail: ZDCData?

  private var parts: [ZDCData] { [data, metadata, thumbnail].compactMap(\.self) }

  /// Whether any part of the answer is provided later.
  package var isPromised: Bool { parts.contains(where: \.isPromised) }

  /// Whether any part is a promise that the app fulfills without a closure run by the framework.
  package var isLeftToTheApp: Bool { parts.contains(where: \.isLeftToTheApp) }
}

/// Asks the app for the content of nodes, in one read transaction. Content is requested only when it is sent or comes
/// next, never earlier.
struct ContentRequest {
  package let session: SyncSession
  package let transaction: ZDCReadTransaction

  package enum Result {
    case answer(ContentAnswer)
    /// The content in the cloud differs from the content that the edit was based on.
    case conflict(OperationRow)
    case refused(OperationRow, any Error)
  }

  /// - Returns: Nil if the node no longer exists.
  package func ask(_ operations: [OperationRow]) throws -> Result? {
    guard let first = operations.first, let row = try first.node.flatMap({ try transaction.nodes.node(id: $0) })
    else { return nil }
    if isInConflict(first, row) { return .conflict(first) }
    do {
      let node = try session.node(row, in: transaction)
      let path = try session.path(row, in: transaction)
      let delegate = session.delegate()
      let isMessage = path.trunk == .outbox
      let data =
        try isMessage
        ? message(node, to: row.unused?.recipients ?? [], delegate)
        : delegate.data(for: node, at: path, transaction: transaction)
      let metadata = try isMessage ? nil : delegate.metadata(for: node, at: path, transaction: transaction)
      let thumbnail = try isMessage ? nil : delegate.thumbnail(for: node, at: path, transaction: transaction)
      let covered = covered(operations, by: [data, metadata, thumbnail])
      return .answer(
        ContentAnswer(
          node: row.id, nodeUUID: row.uuid, nodeID: row.nodeID, covers: covered.map(\.id),
          uploads: covered.map(UploadProgress.Operation.init), baseETag: first.baseETag, data: data,
          metadata: metadata, thumbnail: thumbnail))
    } catch {
      return .refused(first, error)
    }
  }

  /// - Throws: `noDataFromApp` if the app has none: the message is parked.
  private func message(
    _ node: ZDCNode, to recipients: [UserID], _ delegate: any ZeroDarkCloudDelegate
  ) throws -> ZDCData {
    let data = try transaction.cloudState.asking(for: recipients) {
      try delegate.data(forMessage: node, transaction: transaction)
    }
    guard let data else { throw ZDCError(.noDataFromApp) }
    return data
  }

  /// Returns whether the content in the cloud differs from the content that the edit was based on.
  func isInConflict(_ operation: OperationRow) throws -> Bool {
    guard let cloud = try operation.node.flatMap({ try transaction.nodes.cloudContent(id: $0) }) else { return false }
    return cloud.isUploaded && operation.baseETag != cloud.eTag
  }

  private func isInConflict(_ operation: OperationRow, _ row: NodeRow) -> Bool {
    row.isUploaded && operation.baseETag != row.content?.content.eTag
  }

  /// Returns the operations that the answer satisfies. The latest version satisfies every edit queued before it was
  /// provided; other versions are sent one at a time.
  private func covered(_ operations: [OperationRow], by parts: [ZDCData?]) -> [OperationRow] {
    let isLatest = parts.allSatisfy { $0?.isLatestVersion ?? true }
    return isLatest ? operations : Array(operations.prefix(1))
  }
}
