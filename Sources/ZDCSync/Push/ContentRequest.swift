internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
package import ZDCTransfers
internal import ZDCTreesystem

/// What the app answered when it was asked for a node's content.
package struct ContentAnswer: Sendable {
  package var node: Int64
  package var nodeUUID: String
  package var nodeID: NodeID
  /// The operations that were queued when the app was asked.
  package var covers: [Int64]
  /// The same, as the progress manager knows them.
  package var uploads: [UploadProgress.Operation]
  /// The version that the first of them was based on then.
  package var baseETag: String?
  package var data: ZDCData
  package var metadata: ZDCData?
  package var thumbnail: ZDCData?

  private var parts: [ZDCData] { [data, metadata, thumbnail].compactMap(\.self) }

  /// Whether some of it comes later.
  package var isPromised: Bool { parts.contains(where: \.isPromised) }

  /// Whether some of it is a promise for which no closure of the framework runs.
  package var isLeftToTheApp: Bool { parts.contains(where: \.isLeftToTheApp) }
}

/// Asks the app for the content of nodes whose turn it is, in one read transaction (seed 000: content is asked for when
/// it is sent or comes next, never before).
struct ContentRequest {
  package let session: SyncSession
  package let transaction: ZDCReadTransaction

  package enum Result {
    case answer(ContentAnswer)
    /// The content in the cloud is not the one that the edit was based on.
    case conflict(OperationRow)
    case refused(OperationRow, any Error)
  }

  /// - Returns: nil if the node is gone.
  package func ask(_ operations: [OperationRow]) throws -> Result? {
    guard let first = operations.first, let row = try first.node.flatMap({ try transaction.nodes.node(id: $0) })
    else { return nil }
    if isInConflict(first, row) { return .conflict(first) }
    do {
      let node = try session.node(row, in: transaction)
      let path = try session.path(row, in: transaction)
      let delegate = session.delegate()
      let data = try delegate.data(for: node, at: path, transaction: transaction)
      let metadata = try delegate.metadata(for: node, at: path, transaction: transaction)
      let thumbnail = try delegate.thumbnail(for: node, at: path, transaction: transaction)
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

  /// Whether the content in the cloud is another one than the edit was based on.
  func isInConflict(_ operation: OperationRow) throws -> Bool {
    guard let row = try operation.node.flatMap({ try transaction.nodes.node(id: $0) }) else { return false }
    return isInConflict(operation, row)
  }

  private func isInConflict(_ operation: OperationRow, _ row: NodeRow) -> Bool {
    row.isUploaded && operation.baseETag != row.content?.content.eTag
  }

  /// The newest state satisfies every edit that was queued before it was given; other versions are sent one by one.
  private func covered(_ operations: [OperationRow], by parts: [ZDCData?]) -> [OperationRow] {
    let isLatest = parts.allSatisfy { $0?.isLatestVersion ?? true }
    return isLatest ? operations : Array(operations.prefix(1))
  }
}
