public import Foundation
package import ZDCClientStore
internal import ZDCSupport
internal import ZDCTreesystem

extension ZDCProgressManager {
  /// Returns the operations that are being sent to the server.
  public func allUploadingOperationUUIDs() -> Set<String> {
    Set(state.withLock { Array($0.uploads.values.joined()) })
  }

  /// Returns the operations of a local user that are being sent to the server.
  public func allUploadingOperationUUIDs(_ localUserID: String) -> Set<String> {
    Set(uploads(localUserID).compactMap(\.operationUUID))
  }

  /// Returns the nodes that have an upload in progress.
  ///
  /// ```swift
  /// for nodeID in zdc.progressManager.allUploadingNodeIDs() { refreshRow(nodeID) }
  /// ```
  public func allUploadingNodeIDs() -> Set<String> {
    Set(state.withLock { Array($0.uploads.keys) })
  }

  /// Returns the nodes of a local user that have an upload in progress.
  public func allUploadingNodeIDs(_ localUserID: String) -> Set<String> {
    Set(uploads(localUserID).map(\.nodeID))
  }

  private func uploads(_ localUserID: String) -> [ZDCProgressManagerChanges] {
    state.withLock { state in
      state.entries.values.filter { $0.isActive && $0.change.progressType == .upload }.map(\.change)
        .filter { $0.localUserID == localUserID }
    }
  }

  /// Returns the progress of an operation's upload; nil while it is not being sent. It completes when the server has
  /// accepted the operation.
  ///
  /// ```swift
  /// let progress = zdc.progressManager.uploadProgress(forOperationUUID: operation.uuid)
  /// print(progress.map { "\(Int($0.fractionCompleted * 100)) %" } ?? "waiting")
  /// ```
  public func uploadProgress(forOperationUUID operationUUID: String) -> Progress? {
    progress(.upload(operationUUID))
  }

  /// Returns the progress of the upload of the node's content; nil while it is not being sent.
  ///
  /// ```swift
  /// let uploading = zdc.progressManager.allUploadingNodeIDs(user.uuid)
  /// let fractions = uploading.compactMap { zdc.progressManager.dataUploadProgress(forNodeID: $0)?.fractionCompleted }
  /// ```
  public func dataUploadProgress(forNodeID nodeID: String) -> Progress? {
    let operation = state.withLock { state in
      state.uploads[nodeID]?.first { state.entries[.upload($0)]?.change.isDataUpload == true }
    }
    return operation.flatMap { progress(.upload($0)) }
  }
}

/// Reports the upload progress of one local user to the progress manager, and byte counts to callers that request them.
package final class UploadProgress: Sendable {
  package struct Upload: Sendable, Hashable {
    package var sent: UInt64
    package var total: UInt64
  }

  /// An operation that is being sent.
  package struct Operation: Sendable, Hashable {
    package var uuid: String
    package var nodeUUID: String
    package var isData: Bool

    package init(uuid: String, nodeUUID: String, isData: Bool) {
      (self.uuid, self.nodeUUID, self.isData) = (uuid, nodeUUID, isData)
    }

    package init(_ row: OperationRow) {
      self.init(uuid: row.uuid, nodeUUID: row.nodeUUID, isData: row.kind == .putData)
    }
  }

  private let localUserID: String
  private let manager: ZDCProgressManager
  private let uploads = Locked<[String: Upload]>([:])
  private let active = Locked<Set<String>>([])
  /// Watched operations that are expected to be retried.
  private let waiting = Locked<Set<String>>([])

  package init(localUserID: String, manager: ZDCProgressManager) {
    self.localUserID = localUserID
    self.manager = manager
  }

  // MARK: For the engine

  package func begin(_ operations: [Operation]) {
    for operation in operations where active.withLock({ $0.insert(operation.uuid).inserted }) {
      waiting.withLock { _ = $0.remove(operation.uuid) }
      _ = manager.begin(
        .upload(operation.uuid),
        ZDCProgressManagerChanges(
          progressType: .upload, localUserID: localUserID, nodeID: operation.nodeUUID, metaComponents: [],
          operationUUID: operation.uuid, isDataUpload: operation.isData))
    }
  }

  /// Returns a reporter for operations that the same content satisfies. The last unit is reserved for the commit.
  package func reporter(_ operations: [Operation]) -> TransferReport {
    { [self] sent, total in
      for operation in operations { manager.report(.upload(operation.uuid), sent, of: total + 1) }
      guard let node = operations.first?.nodeUUID else { return }
      uploads.withLock { $0[node] = sent < total ? Upload(sent: sent, total: total) : nil }
    }
  }

  package func end(_ operations: some Sequence<Operation>, _ end: ZDCProgressManager.End) {
    for operation in operations {
      let wasActive = active.withLock { $0.remove(operation.uuid) != nil }
      if wasActive || end == .done { self.end(operation.uuid, end) }
      uploads.withLock { $0[operation.nodeUUID] = nil }
    }
  }

  package func endAll() {
    let operations = active.withLock { active in
      defer { active = [] }
      return active
    }
    uploads.withLock { $0 = [:] }
    for operation in operations { end(operation, .waits) }
  }

  private func end(_ operation: String, _ end: ZDCProgressManager.End) {
    let waits = manager.end(.upload(operation), end)
    waiting.withLock { if waits { $0.insert(operation) } else { $0.remove(operation) } }
  }

  /// Operations that still need another attempt, or whose end must still be noticed.
  package var waitingOperations: Set<String> { waiting.withLock { $0 } }

  /// Ends operations that were removed from the queue while they waited.
  package func forget(_ operations: Set<String>) {
    for operation in operations where !active.withLock({ $0.contains(operation) }) { end(operation, .failed) }
  }

  // MARK: Bytes

  package func upload(ofNode nodeUUID: String) -> Upload? {
    uploads.withLock { $0[nodeUUID] }
  }
}
