public import Foundation
internal import Synchronization
public import ZDCTreesystem
public import ZeroDarkCloud

/// A delegate that records every call as a line of text, and can be scripted to fail or to answer late.
///
/// It serves ``TestContent`` from the database. A node without one is uploaded with empty content.
///
/// ```
/// data /notes
/// pushed /notes
/// new /notes/todo
/// moved /notes/todo -> /done
/// conflict path /notes
/// ```
public final class RecordingDelegate: ZeroDarkCloudDelegate {
  /// A method of the delegate, for scripts.
  public enum Callback: String, Sendable, CaseIterable {
    case data, metadata, thumbnail, pushed, sent, new, modified, moved, deleted, deletedDirty, conflict
  }

  /// The reaction to a `.data` conflict.
  public enum DataConflictPolicy: Sendable {
    /// Keep the upload held.
    case hold
    /// Drop the local edit.
    case takeCloud
    /// Let ``TestDevice/download(user:)`` merge line by line.
    case mergeLines
  }

  /// Runs inside a callback, in its transaction. That is a read-write transaction except for `data`, `metadata` and
  /// `thumbnail`.
  public typealias Action = @Sendable (_ node: ZDCNode, _ transaction: ZDCReadTransaction) throws -> Void

  fileprivate struct Script {
    var callback: Callback
    var path: String?
    var times: Int
    var action: Action
  }

  fileprivate struct State {
    var lines: [String] = []
    var scripts: [Script] = []
    var served: [String: ZDCData] = [:]
    var preferred: Set<String>?
    var policy = DataConflictPolicy.hold
    var backgroundFiles: [ZDCCryptoFile] = []
  }

  private let state = Mutex(State())
  private let waiters = Waiters<String>()
  private let cloud = Mutex<ZeroDarkCloud?>(nil)

  /// Creates a delegate that has recorded nothing.
  public init() {}

  // MARK: Recorded calls

  /// All lines since the start or the last ``take()``.
  public var lines: [String] { state.withLock { $0.lines } }

  /// Returns the recorded lines and clears them.
  ///
  /// ```swift
  /// _ = b.recorder.take()
  /// try await b.sync()
  /// #expect(b.recorder.take() == ["new /notes"])
  /// ```
  public func take() -> [String] {
    state.withLock { state in
      defer { state.lines = [] }
      return state.lines
    }
  }

  /// Suspends until the line is recorded or the task is cancelled. Returns immediately if the line is already recorded.
  ///
  /// The transaction of the call may not have committed yet.
  public func wait(for line: String) async {
    await waiters.wait(for: line) { state.withLock { $0.lines.contains(line) } }
  }

  // MARK: Reactions to callbacks

  /// Runs an action in the next matching calls. An error that `action` throws is thrown from the delegate.
  ///
  /// To see how the app's code around the framework behaves when its delegate throws:
  ///
  /// ```swift
  /// struct Refusal: Error {}
  /// b.recorder.on(.new, "/notes") { node, transaction in throw Refusal() }
  /// ```
  ///
  /// - Parameter path: `/a/b`; nil for any path.
  public func on(_ callback: Callback, _ path: String? = nil, times: Int = 1, _ action: @escaping Action) {
    state.withLock { $0.scripts.append(Script(callback: callback, path: path, times: times, action: action)) }
  }

  /// Serves this data for a node, by its uuid, instead of the database's. Pass nil to stop that.
  ///
  /// ```swift
  /// let node = try await a.node("/film")
  /// a.recorder.serve(ZDCData(promise: ZDCDataPromise()), forNodeID: node.uuid)  // content that never arrives
  /// ```
  public func serve(_ data: ZDCData?, forNodeID nodeID: String) {
    state.withLock { $0.served[nodeID] = data }
  }

  /// The action of the delegate when both sides changed a node's content.
  public var dataConflictPolicy: DataConflictPolicy {
    get { state.withLock { $0.policy } }
    set { state.withLock { $0.policy = newValue } }
  }

  /// The answer to `preferredNodeIDsForPullingRcrds`.
  public var preferredNodeIDs: Set<String>? {
    get { state.withLock { $0.preferred } }
    set { state.withLock { $0.preferred = newValue } }
  }

  func attach(_ cloud: ZeroDarkCloud?) { self.cloud.withLock { $0 = cloud } }

  // MARK: Push

  /// Returns the content that the test stored for the node with ``TestDevice``, or no bytes.
  public func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    try note(.data, node, path.relativePath(), transaction)
    if let served = state.withLock({ $0.served[node.uuid] }) { return served }
    return ZDCData(data: try Self.content(of: node, transaction)?.data ?? Data())
  }

  /// Returns the metadata that the test stored for the node; nil if it has none.
  public func metadata(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    try note(.metadata, node, path.relativePath(), transaction, isRecorded: false)
    return try Self.content(of: node, transaction)?.metadata.map { ZDCData(data: $0) }
  }

  /// Returns the thumbnail that the test stored for the node; nil if it has none.
  public func thumbnail(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    try note(.thumbnail, node, path.relativePath(), transaction, isRecorded: false)
    return try Self.content(of: node, transaction)?.thumbnail.map { ZDCData(data: $0) }
  }

  /// Records `pushed` and the path, and remembers the version that the server now has.
  public func didPushNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    try note(.pushed, node, path.relativePath(), transaction)
    var content = try Self.content(of: node, transaction) ?? TestContent(data: Data())
    // Data that was set with `serve` is not what is stored here, so it counts as not downloaded.
    content.eTag = state.withLock { $0.served[node.uuid] } == nil ? node.eTag_data : nil
    Self.store(content, of: node, transaction)
  }

  /// Records `sent` and the text of the message.
  public func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    let text = try Self.content(of: message, transaction).map { String(decoding: $0.data, as: UTF8.self) } ?? ""
    try note(.sent, message, text, transaction)
  }

  // MARK: Pull

  /// Records `new` and the path.
  public func didDiscoverNewNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    try note(.new, node, path.relativePath(), transaction)
  }

  /// Records `modified`, the change and the path.
  public func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    try note(.modified, node, path.relativePath(), transaction, detail: "\(change) ")
  }

  /// Records `moved` and both paths.
  public func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    try note(
      .moved, node, oldPath.relativePath(), transaction, suffix: " -> \(newPath.relativePath())")
  }

  /// Records `deleted` and the path.
  public func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    try note(.deleted, node, path.relativePath(), transaction)
  }

  /// Records the deletion of a node with local changes, and the ancestors that have some.
  public func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    let nodes = cloudTransaction(transaction, node)
    let path = nodes?.shownPath(of: node) ?? "?"
    let dirty = dirtyAncestors.map { id in nodes?.node(id: id).flatMap { nodes?.shownPath(of: $0) } ?? "?" }
    try note(.deletedDirty, node, path, transaction, suffix: " [\(dirty.joined(separator: ", "))]")
  }

  /// Records `conflict`, its kind and the path, and resolves a conflict of content by ``dataConflictPolicy``.
  public func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    try note(.conflict, node, path.relativePath(), transaction, detail: "\(conflict) ")
    guard conflict == .data, dataConflictPolicy == .takeCloud else { return }
    cloudTransaction(transaction, node)?.skipDataUploads(forNodeID: node.uuid)
  }

  /// Returns the nodes that the test wants to be fetched first; nil for the framework's order.
  public func preferredNodeIDsForPullingRcrds() async -> Set<String>? { preferredNodeIDs }

  // MARK: Downloads that outlived their process

  /// Records the line "background data /path". The file is kept for ``takeBackgroundFiles()``.
  public func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile
  ) {
    record("background data \(path.relativePath())") { $0.backgroundFiles.append(cryptoFile) }
  }

  /// Records the line "background meta /path", with the sizes of the downloaded sections.
  public func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo,
    metadata: Data?, thumbnail: Data?
  ) {
    let sizes = [("metadata", metadata), ("thumbnail", thumbnail)].compactMap { name, data in
      data.map { "\(name) \($0.count)" }
    }
    record("background meta \(path.relativePath()) \(sizes.joined(separator: ", "))") { _ in }
  }

  private func record(_ line: String, _ change: (inout State) -> Void) {
    state.withLock { state in
      change(&state)
      state.lines.append(line)
    }
    waiters.resume { $0 == line }
  }

  /// Returns the files of the "background data" lines. The caller must delete them.
  public func takeBackgroundFiles() -> [ZDCCryptoFile] {
    state.withLock { state in
      defer { state.backgroundFiles = [] }
      return state.backgroundFiles
    }
  }

  // MARK: Users

  /// Records the line "user NAME", with the user's display name.
  public func didDiscoverModifiedUser(
    _ user: ZDCUser, forLocalUserID localUserID: String, transaction: ZDCReadWriteTransaction
  ) {
    record("user \(user.displayName)") { _ in }
  }

  // MARK: Recording

  private func note(
    _ callback: Callback, _ node: ZDCNode, _ path: String, _ transaction: ZDCReadTransaction, detail: String = "",
    suffix: String = "", isRecorded: Bool = true
  ) throws {
    let line = "\(callback.rawValue) \(detail)\(path)\(suffix)"
    let actions = state.withLock { state in
      if isRecorded { state.lines.append(line) }
      return state.actions(for: callback, path)
    }
    if isRecorded { waiters.resume { $0 == line } }
    for action in actions { try action(node, transaction) }
  }

  private func cloudTransaction(_ transaction: ZDCReadWriteTransaction, _ node: ZDCNode) -> ZDCCloudTransaction? {
    cloud.withLock { $0 }?.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  }

  // MARK: The network

  /// Records the line "reconnected".
  public func didReconnectToInternet() {
    state.withLock { $0.lines.append("reconnected") }
    waiters.resume { $0 == "reconnected" }
  }

  // MARK: Content

  static func content(of node: ZDCNode, _ transaction: ZDCReadTransaction) throws -> TestContent? {
    try transaction.object(TestContent.self, forKey: node.uuid, inCollection: TestContent.collection)
  }

  static func store(_ content: TestContent, of node: ZDCNode, _ transaction: ZDCReadWriteTransaction) {
    transaction.setObject(content, forKey: node.uuid, inCollection: TestContent.collection)
  }
}

extension RecordingDelegate.State {
  fileprivate mutating func actions(
    for callback: RecordingDelegate.Callback, _ path: String
  ) -> [RecordingDelegate.Action] {
    var due: [RecordingDelegate.Action] = []
    for index in scripts.indices where scripts[index].callback == callback && (scripts[index].path ?? path) == path {
      scripts[index].times -= 1
      due.append(scripts[index].action)
    }
    scripts.removeAll { $0.times <= 0 }
    return due
  }
}
