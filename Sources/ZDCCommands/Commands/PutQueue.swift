internal import ZeroDarkCloud

/// Turns scanned files into nodes and queued uploads, a thousand to a transaction.
struct PutQueue {
  let opened: OpenProfile
  let user: String
  let overwrites: Bool
  let makesParents: Bool
  private(set) var report = PutCommand.Report()
  /// Nodes with an upload of ours, from this run or from an earlier one that did not come to its end.
  private(set) var queuedNodes: Set<String> = []
  /// Those of them whose upload takes long enough to be watched.
  private(set) var largeNodes: [String] = []
  /// Bytes of the earlier ones.
  private(set) var earlierBytes: UInt64 = 0
  private let queuedBefore: Set<String>

  static let otherKind = "the tree has a folder where this is a file, or the other way round"
  private static let batch = 1_000

  init(opened: OpenProfile, user: String, overwrites: Bool, makesParents: Bool) async throws {
    queuedBefore = try await opened.reader.read { Set(try opened.cloud($0, user).queue().keys) }
    self.opened = opened
    self.user = user
    self.overwrites = overwrites
    self.makesParents = makesParents
  }

  /// What goes from one transaction to the next.
  struct State: Sendable {
    var report: PutCommand.Report
    var queuedNodes: Set<String>
    var largeNodes: [String]
    var earlierBytes: UInt64
    /// Nodes that had something queued when this run began.
    let queuedBefore: Set<String>
    /// Nodes that have children in the source, by the names that lead there.
    var folders: [[String]: ZDCNode] = [:]
    /// Folders that were left out, so that what is below them is too.
    var leftOut: Set<[String]> = []
  }

  /// - Parameter progress: told how many entries more are queued or need nothing.
  mutating func add(_ item: PutCommand.Item, progress: (Int) -> Void) async throws {
    var state = State(
      report: report, queuedNodes: queuedNodes, largeNodes: largeNodes, earlierBytes: earlierBytes,
      queuedBefore: queuedBefore)
    state.report.skipped += item.scan.skipped.map { .init(path: $0.path, reason: $0.reason) }
    let rules = PutTransaction.Rules(
      target: item.target, isSpooled: item.isSpooled, overwrites: overwrites, makesParents: makesParents)
    var rest = item.scan.entries[...]
    while !rest.isEmpty {
      let (entries, before) = (Array(rest.prefix(Self.batch)), state)
      rest = rest.dropFirst(Self.batch)
      state = try await opened.connection.write { [opened, user] transaction in
        var work = PutTransaction(
          transaction: transaction, cloud: try opened.cloud(transaction, user), rules: rules, state: before)
        for entry in entries { try work.put(entry) }
        return work.state
      }
      progress(entries.count)
    }
    report = state.report
    queuedNodes = state.queuedNodes
    largeNodes = state.largeNodes
    earlierBytes = state.earlierBytes
  }
}

/// One transaction of ``PutQueue``: node, link, record and queued upload of each file together.
struct PutTransaction {
  struct Rules: Sendable {
    var target: ZDCTreesystemPath
    var isSpooled: Bool
    var overwrites: Bool
    var makesParents: Bool
  }

  let transaction: ZDCReadWriteTransaction
  let cloud: WritableTree
  let rules: Rules
  var state: PutQueue.State
  /// Children by name of the folders that this transaction has looked into.
  private var childrenByParent: [String: [String: ZDCNode]] = [:]

  init(transaction: ZDCReadWriteTransaction, cloud: WritableTree, rules: Rules, state: PutQueue.State) {
    self.transaction = transaction
    self.cloud = cloud
    self.rules = rules
    self.state = state
  }

  mutating func put(_ entry: SourceScan.Entry) throws {
    if !entry.names.isEmpty, state.leftOut.contains(Array(entry.names.dropLast())) {
      state.leftOut.insert(entry.names)
      return
    }
    if entry.names.isEmpty, rules.target.isTrunk { return try enterTrunk(entry) }
    let (parent, name) = try place(of: entry)
    let existing = try child(name, of: parent)
    let decision = PutDecision.decide(
      entry.facts, over: try existing.map(describe), overwrite: rules.overwrites)
    if decision == .unchanged, let existing { takeOver(existing, entry.facts) }
    try carryOut(decision, entry, existing, parent, name)
  }

  /// An earlier run queued it and did not live to see it sent: this one returns when that is done, too.
  private mutating func takeOver(_ node: ZDCNode, _ facts: FileFacts) {
    guard state.queuedBefore.contains(node.uuid), state.queuedNodes.insert(node.uuid).inserted else { return }
    guard facts.kind == .file else { return }
    state.earlierBytes += facts.size
    if facts.size > ExportRun.largeBytes { state.largeNodes.append(node.uuid) }
  }

  /// The contents of a folder right below a trunk, which has no metadata of its own.
  private mutating func enterTrunk(_ entry: SourceScan.Entry) throws {
    guard entry.facts.kind == .folder else {
      throw CommandError(.usage, "invalidPath", "a file needs a name in the tree")
    }
    state.folders[[]] = try cloud.requireNode(at: rules.target)
  }

  private mutating func carryOut(
    _ decision: PutDecision, _ entry: SourceScan.Entry, _ existing: ZDCNode?, _ parent: ZDCNode, _ name: String
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
    case .newerInTree: state.report.newerInTree.append(entry.path)
    case .conflict: state.report.conflicts.append(entry.path)
    case .otherKind:
      state.report.skipped.append(.init(path: entry.path, reason: PutQueue.otherKind))
      state.leftOut.insert(entry.names)
    }
  }

  private mutating func queue(_ entry: SourceScan.Entry, _ node: ZDCNode, isNew: Bool) throws {
    guard let metadata = entry.facts.metadata else { return }
    var record = FileRecord(
      metadata, size: entry.facts.size, source: metadata.kind == .file ? entry.path : nil, eTag: node.eTag_data)
    record.isSpooled = rules.isSpooled
    transaction.setObject(record, forKey: node.uuid, inCollection: FileRecord.collection)
    // A new node has its first upload queued with it.
    if !isNew { cloud.queueUpload(node.uuid) }
    state.queuedNodes.insert(node.uuid)
    if isNew { state.report.created += 1 } else { state.report.updated += 1 }
    state.report.bytes += record.size
    if record.size > ExportRun.largeBytes { state.largeNodes.append(node.uuid) }
    enter(entry, node)
  }

  private mutating func enter(_ entry: SourceScan.Entry, _ node: ZDCNode?) {
    if entry.facts.kind == .folder { state.folders[entry.names] = node }
  }

  // MARK: Looking

  private mutating func place(of entry: SourceScan.Entry) throws -> (parent: ZDCNode, name: String) {
    if let name = entry.names.last, let parent = state.folders[Array(entry.names.dropLast())] { return (parent, name) }
    guard let parent = rules.target.parent() else {
      throw CommandError(.software, "internal", "a file without a folder")
    }
    return (try folder(at: parent), rules.target.nodeName)
  }

  private mutating func folder(at path: ZDCTreesystemPath) throws -> ZDCNode {
    if let node = try cloud.node(at: path) { return node }
    guard rules.makesParents, let above = path.parent() else {
      throw CommandError(
        .noInput, "missingParent", "\(ShownName.text(path.fullPath())): no such node in the tree",
        hint: "make the folders on the way with --parents")
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
    // Asked only where the answer decides: a rerun over ten thousand files that did not change asks nothing.
    let isCurrent = record.map { $0.eTag == node.eTag_data } ?? false
    return PutDecision.Existing(
      eTag: node.eTag_data, isQueued: try !isCurrent && cloud.hasQueuedUpload(node),
      hasChildren: try record == nil && cloud.hasChildren(node), record: record)
  }
}
