public import Foundation
public import ZDCMerge
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

// Queued uploads of content, and conflicts with other devices' content.

extension ZDCCloudTransaction {
  /// Queues an upload of the node's content. The delegate is asked for the content when the upload is next to be sent.
  ///
  /// If others change the content in the meantime, the upload is held and `didDiscoverConflict` is called.
  ///
  /// Several queued uploads of a node are sent as one, unless the delegate returns a ``ZDCData`` without
  /// ``ZDCData/isLatestVersion``.
  ///
  /// ```swift
  /// task.title = "Buy oat milk"
  /// let changeset = try task.changeset()
  /// transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  /// cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: changeset)
  /// ```
  ///
  /// - Parameters:
  ///   - nodeID: The node's ``ZDCNode/uuid``.
  ///   - changeset: The change, for ``ZDCCloudReadTransaction/pendingChangesets(forNodeID:)``.
  /// In a tree of another user that the local user may only read, the call poisons the transaction with `notAllowed`.
  ///
  /// - Returns: nil for an unknown node, a trunk or a pointer, and if the call has kept a graft that the local user may
  ///   only read, after another device deleted the node above it.
  @discardableResult
  public func queueDataUpload(
    forNodeID nodeID: String, withChangeset changeset: ZDCChangeset?
  ) -> ZDCCloudOperation? {
    readWrite.poisoning { () -> ZDCCloudOperation? in
      guard let row = try row(nodeID), try !transaction.isTrunkRoot(row) else { return nil }
      // The app may keep a graft of a branch that the user cannot write.
      let isKept = try revive(row)
      if try row.pointer != nil || (isKept && row.parent == nil && !mayWrite(zone: row.zone)) { return nil }
      try checkMayWrite(zone: row.zone)
      return try transaction.zdcOperation(try queueUpload(row, changeset: changeset))
    } ?? nil
  }

  /// The upload has the base of an earlier one that is still queued, because the app has merged nothing since. Without
  /// one, its base is the newest version, or none if the app has marked that for download: then the app has changed an
  /// older one, which may not replace it without a merge.
  private func queueUpload(_ row: NodeRow, changeset: ZDCChangeset?) throws -> OperationRow {
    let earlier = try operations.operations(node: row.id)
    if !row.isUploaded, let signal = earlier.first(where: { $0.kind == .deliver }),
      !earlier.contains(where: { $0.kind == .create })
    {
      // A signal has no copy: only its delivery asks for the content.
      try askAgain(earlier)
      signalQueue()
      return signal
    }
    let lastUpload = earlier.last { $0.kind == .putData }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: row.zone, kind: .putData, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID,
      createdMs: now)
    operation.baseETag = try lastUpload == nil ? versionOfApp(row) : lastUpload?.baseETag
    operation.changeset = changeset.map { [UInt8]($0.encoded) }
    let create = earlier.last { $0.kind == .create }
    try operations.insert(&operation, dependsOn: [create, lastUpload].compactMap { $0?.id })
    try askAgain(earlier)
    signalQueue(of: row.zone)
    return operation
  }

  private func versionOfApp(_ row: NodeRow) throws -> String? {
    let marked = ZDCNodeComponents(rawValue: try transaction.downloadMarks.components(node: row.id))
    return marked.contains(.data) ? nil : row.content?.content.eTag
  }

  /// Uploads for which the app had nothing are asked for again after the next change.
  private func askAgain(_ earlier: [OperationRow]) throws {
    for operation in earlier where operation.reason == .noDataFromApp && operation.state == .pending {
      try operations.setState(.pending, reason: .ready, id: operation.id)
    }
  }

  /// Records that the app has merged this version of the content into its own. Queued uploads may now replace it, and a
  /// held upload resumes.
  ///
  /// The merge is recorded in the merge journal, in this transaction.
  ///
  /// ```swift
  /// let pending = cloud.pendingChangesets(forNodeID: node.uuid)
  /// let report = try task.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
  /// transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  /// cloud.didMergeData(withETag: info.eTag, forNodeID: node.uuid, report: report)
  /// ```
  ///
  /// - Parameters:
  ///   - eTag: The eTag of the downloaded version (``ZDCCloudDataInfo/eTag``), which need not be the newest.
  ///   - nodeID: The node's ``ZDCNode/uuid``.
  ///   - report: The result of ``ZDCSyncable/mergeReporting(cloudVersion:pendingChangesets:)``. Its remaining changes
  ///     replace the pending changesets, which were based on an older version. If no change remains, the merged value
  ///     equals the cloud's, and the uploads are dropped unless one was queued without a changeset.
  public func didMergeData(
    withETag eTag: String, forNodeID nodeID: String, report: ZDCMergeReport? = nil
  ) {
    readWrite.poisoning {
      guard let row = try row(nodeID) else { return }
      let uploads = try uploads(nodeID)
      if report != nil || uploads.contains(where: { $0.baseETag != eTag }) {
        try record(.merged, row, uploads, eTag: eTag) { $0.report = report }
      }
      try rebase(uploads, onto: eTag, report)
      if !uploads.isEmpty { try releaseLocalFiles(of: row) }
      signalQueue()
    }
  }

  private func rebase(_ uploads: [OperationRow], onto eTag: String, _ report: ZDCMergeReport?) throws {
    let waiting = uploads.filter { $0.state != .inFlight }
    let isKnown = waiting.allSatisfy { $0.changeset != nil }
    if let report, report.remaining == nil, isKnown {
      for operation in waiting { try operations.delete(id: operation.id) }
      return
    }
    for var operation in uploads {
      operation.baseETag = eTag
      if operation.reason == .conflictHeld { operation.reason = .ready }
      if let report, isKnown, operation.state != .inFlight {
        // One changeset says it all; the later ones change nothing more.
        let changes = operation.id == waiting.first?.id ? report.remaining ?? .empty : .empty
        operation.changeset = [UInt8](changes.encoded)
      }
      try operations.update(operation)
    }
  }

  /// Drops the queued uploads of the node's content, so that the cloud's version wins. Uploads that were already sent
  /// are not undone.
  ///
  /// If they were in conflict with the cloud's version, the outcome is recorded in the merge journal, in this
  /// transaction.
  ///
  /// ```swift
  /// let mine = try JSONEncoder().encode(task)
  /// transaction.setObject(theirs, forKey: task.uuid, inCollection: "tasks")
  /// cloud.skipDataUploads(forNodeID: node.uuid, losing: mine)
  /// ```
  ///
  /// - Parameters:
  ///   - nodeID: The node's ``ZDCNode/uuid``.
  ///   - content: The version that loses, for ``ZDCMergeJournalEntry/content``, so that ``undo(_:)`` can give it back.
  ///     Its size is limited by ``ZDCJournalLimits/maxEntryBytes``.
  ///   - keptNodeID: Another node in which the app keeps the version that loses.
  public func skipDataUploads(
    forNodeID nodeID: String, losing content: Data? = nil, keptAs keptNodeID: String? = nil
  ) {
    readWrite.poisoning {
      guard let row = try row(nodeID) else { return }
      let uploads = try uploads(nodeID)
      let eTag = row.content?.content.eTag
      if let eTag, row.isUploaded, uploads.contains(where: { $0.baseETag != eTag }) {
        try record(.cloudWon, row, uploads, eTag: eTag) { entry in
          entry.content = content
          entry.result.eTag = eTag
          entry.otherNodeID = keptNodeID
          let kept = try keptNodeID.flatMap { try self.row($0) }
          entry.mine.path = try kept.map(transaction.zdcPath) ?? entry.mine.path
          entry.mine.cloudID = kept?.nodeID.text
        }
      }
      for operation in uploads where operation.state != .inFlight {
        try operations.delete(id: operation.id)
      }
      if !uploads.isEmpty { try releaseLocalFiles(of: row) }
      signalQueue()
    }
  }

  /// Removes the content that the app stored for the duration of its uploads, once none is queued. Otherwise no
  /// download would ever replace it.
  private func releaseLocalFiles(of row: NodeRow) throws {
    guard try !operations.operations(node: row.id).contains(where: { $0.kind == .putData }) else { return }
    try readWrite.context.observers.uploadsDropped(readWrite, row.id)
  }

  private func record(
    _ kind: ZDCMergeJournalEntry.Kind, _ row: NodeRow, _ uploads: [OperationRow], eTag: String,
    _ describe: (inout ZDCMergeJournalEntry) throws -> Void
  ) throws {
    let path = try transaction.zdcPath(row)
    try readWrite.record(kind, row) { entry in
      entry.base = .init(path: path, eTag: uploads.first?.baseETag)
      entry.mine = .init(path: path)
      entry.theirs = .init(path: path, eTag: eTag)
      entry.result = .init(path: path)
      // The version that was merged with may be an older one by now.
      if row.content?.content.eTag == eTag { entry.cloudWriterID = row.content?.writer.text }
      try describe(&entry)
    }
  }

  // MARK: Nodes that were deleted in the cloud and kept here

  /// Queues a kept node again, and the nodes above it.
  ///
  /// - Throws: `conflict` for any other node.
  func requeue(_ row: NodeRow) throws -> ZDCNode {
    guard try revive(row) else { throw ZDCCloudError(.conflict, detail: "the node is already in the tree") }
    return try transaction.zdcNode(row)
  }

  /// Releases the queued operations of a node and of the nodes above it that wait for the app since another device deleted
  /// one of them.
  @discardableResult
  func revive(_ row: NodeRow) throws -> Bool {
    // The app sees the top of a shared branch and the pointer to it as one node, and may keep either.
    let place = try transaction.place(of: row)
    // The top of a branch that its owner has ended is the root of its zone.
    let top = row.parent == nil ? [row] : []
    var found = false
    for kept in try top + nodes.ancestry(of: place) {
      for operation in try operations.operations(node: kept.id) where operation.reason == .deletedRemotely {
        try operations.setState(.pending, reason: .ready, id: operation.id)
        found = true
      }
    }
    if found { signalQueue() }
    return found
  }
}
