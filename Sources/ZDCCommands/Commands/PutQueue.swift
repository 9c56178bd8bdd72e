internal import Foundation
internal import Synchronization
internal import ZeroDarkCloud

/// Turns scanned files into nodes and queued uploads, a thousand per transaction.
struct PutQueue {
  let opened: OpenProfile
  let user: String
  let overwrites: Bool
  let makesParents: Bool
  /// Whether to fetch content of other devices, to determine whether it is a file or a folder.
  let fetchesKinds: Bool
  /// Whether to only determine what would be done.
  let isDryRun: Bool
  private var state: State

  private static let batch = 1_000

  var report: PutCommand.Report { state.report }
  /// Nodes with a queued upload from this run, or from an earlier one that was interrupted.
  var queuedNodes: NodeSet { state.queuedNodes }
  /// Those of them whose upload is large enough to show its progress.
  var largeNodes: [String] { state.largeNodes }
  /// The bytes of the uploads from earlier runs.
  var earlierBytes: UInt64 { state.earlierBytes }

  init(
    opened: OpenProfile, user: String, overwrites: Bool, makesParents: Bool, fetchesKinds: Bool, isDryRun: Bool
  ) async throws {
    state = State()
    state.queuedBefore = try await opened.reader.read { NodeSet(try opened.cloud($0, user).queue().keys) }
    self.opened = opened
    self.user = user
    self.overwrites = overwrites
    self.makesParents = makesParents
    self.fetchesKinds = fetchesKinds
    self.isDryRun = isDryRun
    if isDryRun { state.report.changes = [] }
  }

  /// The state passed from one transaction to the next.
  struct State: Sendable {
    var report = PutCommand.Report()
    var queuedNodes = NodeSet()
    var largeNodes: [String] = []
    var earlierBytes: UInt64 = 0
    /// Nodes with queued operations when this run began.
    var queuedBefore = NodeSet()
    var item = Item()

    /// The state of the source that is being put.
    struct Item: Sendable {
      /// Nodes that have children in the source, by the names that lead to them.
      var folders: [[String]: ZDCNode] = [:]
      /// Folders that were left out, so that their children are left out too.
      var leftOut: Set<[String]> = []
      /// Entries to put at the end, when the kinds of their nodes are known.
      var deferred: [SourceWalk.Entry] = []
      var deferredPlaces: Set<[String]> = []
      var deferredNodes: [ZDCNode] = []
      /// The fetched kinds, by the content's eTag; nil while entries may still be deferred.
      var kinds: [String: FileMetadata.Kind]?

      mutating func postpone(_ entry: SourceWalk.Entry, _ node: ZDCNode? = nil) {
        deferred.append(entry)
        deferredPlaces.insert(entry.names)
        if let node { deferredNodes.append(node) }
      }
    }
  }

  /// - Parameter progress: Receives the number of further entries that are queued or need no upload.
  mutating func add(_ item: PutCommand.Item, progress: (Int) -> Void) async throws {
    state.item = State.Item()
    let rules = PutTransaction.Rules(
      target: item.target, isSpooled: item.isSpooled, overwrites: overwrites, makesParents: makesParents,
      fetchesKinds: fetchesKinds)
    let start = isDryRun ? state : nil
    var walk = item.walk
    try await queue(rules, progress) { count throws(CommandError) in try walk.next(count) }
    if !state.item.deferred.isEmpty { try await addDeferred(item, rules, start, progress) }
    state.report.skipped += walk.skipped.map { .init(path: $0.path, reason: $0.reason, isByRule: $0.isByRule) }
  }

  private mutating func addDeferred(
    _ item: PutCommand.Item, _ rules: PutTransaction.Rules, _ start: State?, _ progress: (Int) -> Void
  ) async throws {
    let kinds = fetchesKinds ? try await kinds(of: state.item.deferredNodes) : [:]
    if let start {
      // A dry run has rolled back what it did, so the folders of the rest do not exist.
      state = start
      state.item.kinds = kinds
      var walk = item.walk
      return try await queue(rules, progress) { count throws(CommandError) in try walk.next(count) }
    }
    state.item.kinds = kinds
    var rest = state.item.deferred[...]
    try await queue(rules, progress) { count throws(CommandError) in
      defer { rest = rest.dropFirst(count) }
      return Array(rest.prefix(count))
    }
  }

  /// - Parameter next: Returns up to the given number of further entries; an empty array at the end.
  private mutating func queue(
    _ rules: PutTransaction.Rules, _ progress: (Int) -> Void,
    _ next: (Int) throws(CommandError) -> [SourceWalk.Entry]
  ) async throws {
    while true {
      // A dry run rolls back at the end of its transaction, so it uses only one.
      let entries = try next(isDryRun ? .max : Self.batch)
      guard !entries.isEmpty else { return }
      // Moved, not copied: the state grows with the number of files.
      let handed = Handover(state)
      state = State()
      state = try await opened.change(isDryRun: isDryRun) { [opened, user] transaction in
        var work = PutTransaction(
          transaction: transaction, cloud: try opened.cloud(transaction, user), rules: rules, state: try handed.take())
        for entry in entries { try work.put(entry) }
        return work.state
      }
      progress(entries.count)
    }
  }

  private final class Handover: Sendable {
    private let state: Mutex<State?>

    init(_ state: State) {
      self.state = Mutex(state)
    }

    func take() throws(CommandError) -> State {
      guard let taken = state.withLock({ $0.take() }) else {
        throw CommandError(.software, "internal", "a transaction ran twice")
      }
      return taken
    }
  }

  /// Fetches the metadata of nodes without data, a thousand per request.
  ///
  /// - Returns: The kinds by eTag, without nodes whose content cannot be opened. Content of another app counts as a
  ///   file.
  private func kinds(of nodes: [ZDCNode]) async throws -> [String: FileMetadata.Kind] {
    guard let downloads = opened.zdc.downloadManager else { return [:] }
    var kinds: [String: FileMetadata.Kind] = [:]
    for try await download in downloads.downloadContents(of: nodes) {
      guard let eTag = download.node.eTag_data, case .success(let content) = download.content else { continue }
      switch content {
      case .memory(_, let metadata, _): kinds[eTag] = FileMetadata([UInt8](metadata))?.kind ?? .file
      case .file(let file):
        kinds[eTag] = .file
        try FileManager.default.removeItem(at: file.fileURL)
      }
    }
    return kinds
  }
}

/// One transaction of ``PutQueue``: writes node, link, record and queued upload of each file together.
struct PutTransaction {
  struct Rules: Sendable {
    var target: ZDCTreesystemPath
    var isSpooled: Bool
    var overwrites: Bool
    var makesParents: Bool
    var fetchesKinds: Bool
  }

  let transaction: ZDCReadWriteTransaction
  let cloud: WritableTree
  let rules: Rules
  var state: PutQueue.State
  /// The children by name, for each folder that this transaction has read.
  private var childrenByParent: [String: [String: ZDCNode]] = [:]

  init(transaction: ZDCReadWriteTransaction, cloud: WritableTree, rules: Rules, state: PutQueue.State) {
    self.transaction = transaction
    self.cloud = cloud
    self.rules = rules
    self.state = state
  }

  mutating func put(_ entry: SourceWalk.Entry) throws {
    if !entry.names.isEmpty, state.item.leftOut.contains(Array(entry.names.dropLast())) {
      state.item.leftOut.insert(entry.names)
      return
    }
    if entry.names.isEmpty, rules.target.isTrunk { return try enterTrunk(entry) }
    if state.item.kinds == nil, !entry.names.isEmpty, state.item.deferredPlaces.contains(Array(entry.names.dropLast()))
    {
      return state.item.postpone(entry)
    }
    let (parent, name) = try place(of: entry)
    let existing = try child(name, of: parent)
    let decision = PutDecision.decide(
      entry.facts, over: try existing.map(describe), overwrite: rules.overwrites)
    if decision == .unchanged, let existing { takeOver(existing, entry.facts) }
    try carryOut(decision, entry, existing, parent, name)
  }

  /// Adopts an upload that an interrupted run queued, so that this run waits for it, too.
  private mutating func takeOver(_ node: ZDCNode, _ facts: FileAttributes) {
    guard state.queuedBefore.contains(node.uuid), state.queuedNodes.insert(node.uuid) else { return }
    guard facts.kind == .file else { return }
    state.earlierBytes += facts.size
    if facts.size > ExportRun.largeBytes { state.largeNodes.append(node.uuid) }
  }

  /// Puts the children of a folder directly below a trunk, which has no metadata.
  private mutating func enterTrunk(_ entry: SourceWalk.Entry) throws {
    guard entry.facts.kind == .folder else {
      throw CommandError(.usage, "invalidPath", "a file needs a name in the tree")
    }
    state.item.folders[[]] = try cloud.requireNode(at: rules.target)
  }

  private mutating func carryOut(
    _ decision: PutDecision, _ entry: SourceWalk.Entry, _ existing: ZDCNode?, _ parent: ZDCNode, _ name: String
  ) throws {
    switch decision {
    case .create:
      let node = try cloud.insert(name, below: parent)
      childrenByParent[parent.uuid, default: [:]][name] = node
      try cloud.link(node)
      try queue(entry, node, isNew: true)
    case .update:
      guard let existing else { return }
      if try record(of: existing) == nil { try cloud.link(existing) }
      try queue(entry, existing, isNew: false)
    case .unchanged:
      state.report.unchanged += 1
      enter(entry, existing)
    case .newerInTree: state.report.newerInTree.append(source(of: entry))
    case .conflict: state.report.conflicts.append(source(of: entry))
    case .unknownKind where state.item.kinds == nil: state.item.postpone(entry, existing)
    case .fileInPlace: leaveOut(entry, Self.fileInPlace)
    case .folderInPlace: leaveOut(entry, Self.folderInPlace)
    case .unknownKind: leaveOut(entry, rules.fetchesKinds ? Self.unreadableKind : Self.unknownKind)
    }
  }

  private static let fileInPlace = "the tree has a file at this path; put it under another name"
  private static let folderInPlace =
    "the tree has a folder at this path; put it under another name"
  private static let unknownKind =
    "this device does not know yet whether the tree has a file or a folder here; put it without --queue"
  private static let unreadableKind =
    "the content in the cloud cannot be read, so it may be a file or a folder; put it under another name"

  private mutating func leaveOut(_ entry: SourceWalk.Entry, _ reason: String) {
    state.report.skipped.append(.init(path: source(of: entry), reason: reason))
    state.item.leftOut.insert(entry.names)
  }

  /// Returns the source as the user named it.
  private func source(of entry: SourceWalk.Entry) -> String { rules.isSpooled ? "-" : entry.path }

  private mutating func queue(_ entry: SourceWalk.Entry, _ node: ZDCNode, isNew: Bool) throws {
    guard let metadata = entry.facts.metadata else { return }
    var record = FileRecord(
      metadata, size: entry.facts.size, source: metadata.kind == .file ? entry.path : nil, eTag: node.eTag_data)
    record.stamp = metadata.kind == .file ? entry.facts.stamp : nil
    record.isSpooled = rules.isSpooled
    if rules.isSpooled { SpooledFile.store(entry.path, node.uuid, transaction) }
    transaction.setObject(record, forKey: node.uuid, inCollection: FileRecord.collection)
    // Inserting a new node already queues its first upload.
    if !isNew { cloud.queueUpload(node.uuid) }
    state.queuedNodes.insert(node.uuid)
    if isNew { state.report.created += 1 } else { state.report.updated += 1 }
    if state.report.changes != nil {
      let path = path(of: entry)
      state.report.changes?.append(.init(change: isNew ? "new" : "changed", path: path))
    }
    state.report.bytes += record.size
    if record.size > ExportRun.largeBytes { state.largeNodes.append(node.uuid) }
    enter(entry, node)
  }

  private func path(of entry: SourceWalk.Entry) -> String {
    entry.names.reduce(rules.target) { $0.appendingComponent($1) }.fullPath()
  }

  private mutating func enter(_ entry: SourceWalk.Entry, _ node: ZDCNode?) {
    if entry.facts.kind == .folder { state.item.folders[entry.names] = node }
  }

  // MARK: Look-ups

  private mutating func place(of entry: SourceWalk.Entry) throws -> (parent: ZDCNode, name: String) {
    if let name = entry.names.last, let parent = state.item.folders[Array(entry.names.dropLast())] {
      return (parent, name)
    }
    guard let parent = rules.target.parent() else {
      throw CommandError(.software, "internal", "a file without a folder")
    }
    return (try folder(at: parent), rules.target.nodeName)
  }

  private mutating func folder(at path: ZDCTreesystemPath) throws -> ZDCNode {
    if let node = try cloud.node(at: path) {
      try cloud.requireFolder(node, path)
      return node
    }
    guard rules.makesParents, let above = path.parent() else {
      throw CommandError(
        .noInput, "missingParent", "\(ShownName.text(path.fullPath())): no such node in the tree",
        hint: "create missing folders with --parents")
    }
    let node = try cloud.insert(path.nodeName, below: folder(at: above))
    try cloud.link(node)
    let now = FileTime(seconds: Int64(WallClock.milliseconds / 1_000), nanoseconds: 0)
    let record = FileRecord(FileMetadata(kind: .folder, mode: 0o755, time: now), size: 0)
    transaction.setObject(record, forKey: node.uuid, inCollection: FileRecord.collection)
    state.queuedNodes.insert(node.uuid)
    state.report.created += 1
    return node
  }

  private mutating func child(_ name: String, of parent: ZDCNode) throws -> ZDCNode? {
    if let known = childrenByParent[parent.uuid] { return known[name] }
    var children: [String: ZDCNode] = [:]
    for node in try cloud.children(of: parent) { if let name = node.name { children[name] = node } }
    childrenByParent[parent.uuid] = children
    return children[name]
  }

  private func record(of node: ZDCNode) throws -> FileRecord? {
    try transaction.object(FileRecord.self, forKey: node.uuid, inCollection: FileRecord.collection)
  }

  private func describe(_ node: ZDCNode) throws -> PutDecision.Existing {
    let record = try record(of: node)
    // Evaluated only where the answer matters: a rerun over ten thousand unchanged files makes no such queries.
    let isCurrent = record.map { $0.eTag == node.eTag_data } ?? false
    return PutDecision.Existing(
      eTag: node.eTag_data, size: node.cloudDataInfo?.dataSize ?? 0,
      isQueued: try !isCurrent && cloud.hasQueuedUpload(node),
      hasChildren: try record == nil && cloud.hasChildren(node), record: record,
      fetchedKind: node.eTag_data.flatMap { state.item.kinds?[$0] })
  }
}
