package import Foundation
internal import Synchronization
package import ZeroDarkCloud

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The app behind `zdc`: it provides the framework with the location of a node's bytes, and receives the changes of
/// other devices.
///
/// Runs in the process that holds the engine lease, which need not be the one that queued the change. So everything it
/// needs is stored in the ``FileRecord``s.
package final class FilesApp: ZeroDarkCloudDelegate {
  private struct State {
    var pushedNodes = 0
    var pushedBytes: UInt64 = 0
    var listener: (@Sendable (RemoteEvent) -> Void)?
  }

  private let state = Mutex(State())
  private let framework = Mutex<WeakFramework>(WeakFramework())

  private struct WeakFramework {
    weak var zdc: ZeroDarkCloud?
  }

  package init() {}

  func attach(_ zdc: ZeroDarkCloud) {
    framework.withLock { $0.zdc = zdc }
  }

  /// The number of content uploads since the start, and their total bytes.
  var pushed: (nodes: Int, bytes: UInt64) { state.withLock { ($0.pushedNodes, $0.pushedBytes) } }

  /// Sets the listener for changes of other devices. It is called for each change after the change is on disk.
  func listen(_ listener: @escaping @Sendable (RemoteEvent) -> Void) {
    state.withLock { $0.listener = listener }
  }

  // MARK: Pushing

  package func data(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData {
    let record = try record(node, transaction)
    guard record.kind == .file else { return ZDCData(data: Data()) }
    guard let source = try source(of: record) else { throw NoSource() }
    return ZDCData(cleartextFileURL: URL(fileURLWithPath: source))
  }

  /// Returns the path of the file with the bytes; nil if it is gone, or if it is a copy that has changed.
  func source(of record: FileRecord) throws -> String? {
    guard let source = record.source, let facts = try FileAttributes.of(source), facts.kind == .file else { return nil }
    return record.isCopy == true && !record.describes(facts) ? nil : source
  }

  package func metadata(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    let record = try record(node, transaction)
    // The file's current metadata, matching its current bytes: the next run sees that the record is older.
    if let source = record.source, !record.isSpooled, let facts = try FileAttributes.of(source),
      let metadata = facts.metadata
    {
      return ZDCData(data: Data(metadata.bytes))
    }
    return ZDCData(data: Data(record.metadata.bytes))
  }

  package func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    try transaction.object(MessageText.self, forKey: message.uuid, inCollection: MessageText.collection)
      .map { ZDCData(data: $0.bytes) }
  }

  package func didPushNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    // The copy in the outbox has the text from now on.
    transaction.removeObject(forKey: node.uuid, inCollection: MessageText.collection)
    guard var record = try transaction.object(FileRecord.self, forKey: node.uuid, inCollection: FileRecord.collection)
    else { return }
    let cloud = zdc?.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    // If a newer version was put during this upload, the record and its file belong to that version.
    let isNewest = cloud?.hasPendingDataUploads(forNodeID: node.uuid) == false
    let spooled =
      record.isSpooled
      ? try SpooledFile.take(ofNode: node.uuid, except: isNewest ? nil : record.source, transaction) : []
    let size = record.size
    if isNewest {
      record.eTag = node.eTag_data
      if record.isSpooled { (record.source, record.isSpooled) = (nil, false) }
      transaction.setObject(record, forKey: node.uuid, inCollection: FileRecord.collection)
    }
    transaction.afterCommit { [self] in
      for path in spooled { unlink(path) }
      state.withLock { state in
        state.pushedNodes += 1
        state.pushedBytes += size
      }
    }
  }

  /// The app has no bytes for a node; `zdc explain` shows this as "no data from the app".
  private struct NoSource: Error {}

  private func record(_ node: ZDCNode, _ transaction: ZDCReadTransaction) throws -> FileRecord {
    if let record = try transaction.object(FileRecord.self, forKey: node.uuid, inCollection: FileRecord.collection) {
      return record
    }
    // A folder that other devices made and deleted, and that stays because of its children.
    guard zdc?.cloudTransaction(transaction, forLocalUserID: node.localUserID)?.hasChildren(node.uuid) ?? false
    else { throw NoSource() }
    let now = FileTime(seconds: Int64(WallClock.milliseconds / 1_000), nanoseconds: 0)
    return FileRecord(FileMetadata(kind: .folder, mode: 0o755, time: now), size: 0)
  }

  // MARK: Pulling

  package func didDiscoverNewNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    tell(transaction) { RemoteEvent(.new, node, path, at: $0) }
  }

  package func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    tell(transaction) { RemoteEvent(change == .data ? .modified : .changed, node, path, at: $0) }
  }

  package func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    tell(transaction) { RemoteEvent(.moved, node, newPath, from: oldPath.fullPath(), at: $0) }
  }

  package func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    transaction.removeObject(forKey: node.uuid, inCollection: FileRecord.collection)
    tell(transaction) { RemoteEvent(.deleted, node, path, at: $0) }
  }

  private func tell(_ transaction: ZDCReadWriteTransaction, _ event: @escaping @Sendable (UInt64) -> RemoteEvent) {
    guard let listener = state.withLock({ $0.listener }) else { return }
    transaction.afterCommit { listener(event(WallClock.milliseconds)) }
  }

  func report(_ event: @escaping @Sendable (UInt64) -> RemoteEvent, _ transaction: ZDCReadWriteTransaction) {
    tell(transaction, event)
  }

  var zdc: ZeroDarkCloud? { framework.withLock { $0.zdc } }
}

extension RemoteEvent {
  init(_ kind: Kind, _ node: ZDCNode, _ path: ZDCTreesystemPath, from: String? = nil, at: UInt64) {
    self.init(
      kind, path: path.fullPath(), from: from, cloudID: node.cloudID, size: node.cloudDataInfo?.dataSize, at: at)
  }
}
