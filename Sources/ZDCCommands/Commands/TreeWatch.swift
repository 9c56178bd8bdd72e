internal import ZeroDarkCloud

/// Watches the trees from a process that does not run the engine, by comparing snapshots after each commit of the
/// process that does.
struct TreeWatch {
  let engine: Engine
  let output: Output

  /// Prints changes until the other process stops syncing, or the task is cancelled.
  func run() async throws {
    let watcher = engine.opened.databaseManager.changeWatcher
    // Before the snapshot: the first poll notices no commit, so one between the two would be missed.
    _ = try await watcher.poll()
    var seen = SeenTree(try await snapshot())
    output.note("another zdc process syncs this profile; showing the changes that it pulls")
    while !Task.isCancelled {
      // Asked before the poll, which then notices the last commits of the other process.
      let isSyncedElsewhere = try engine.opened.sync.isSyncedElsewhere()
      if try await watcher.poll() {
        for event in seen.update(try await snapshot(), at: WallClock.milliseconds) { SyncCommand.tell(event, output) }
      } else if !isSyncedElsewhere {
        return
      }
      try await Task.sleep(for: .milliseconds(25))
    }
  }

  private func snapshot() async throws -> SeenTree.Snapshot {
    try await engine.opened.reader.read { [engine] transaction in
      let tree = try engine.opened.cloud(transaction, engine.user)
      var snapshot = SeenTree.Snapshot(queued: Set(try tree.queue().keys))
      for top in tree.tops() {
        for entry in try tree.subtree(at: top) where entry.node.trunk == nil {
          snapshot.nodes[entry.node.uuid] = SeenTree.Node(entry)
        }
      }
      return snapshot
    }
  }
}

extension ReadableTree {
  /// Returns the paths of the trunks, and of the trees of other users.
  fileprivate func tops() -> [ZDCTreesystemPath] {
    let trunks = ZDCTreesystemTrunk.allCases.filter { $0 != .detached && cloud.trunkNode($0) != nil }
    return trunks.map { ZDCTreesystemPath(pathComponents: [], trunk: $0) }
      + cloud.sharedTreeRoots().compactMap { cloud.path(for: $0) }.filter { $0.trunk == .detached }
  }
}

/// The state of the trees in the cloud, as ``TreeWatch`` has seen it. Pure.
package struct SeenTree: Sendable {
  package struct Node: Sendable, Hashable {
    var path: String
    var cloudID: String
    var size: UInt64?
    /// The versions of record and content in the cloud; nil before the first upload.
    var record: String?
    var data: String?

    package init(path: String, cloudID: String, size: UInt64? = nil, record: String?, data: String? = nil) {
      self.path = path
      self.cloudID = cloudID
      self.size = size
      self.record = record
      self.data = data
    }
  }

  package struct Snapshot: Sendable {
    /// By uuid.
    package var nodes: [String: Node]
    /// The uuids of nodes that this device has changed or deleted, as long as it has not sent that.
    package var queued: Set<String>

    package init(nodes: [String: Node] = [:], queued: Set<String>) {
      self.nodes = nodes
      self.queued = queued
    }
  }

  private var known: [String: Node]
  private var queued: Set<String>

  package init(_ snapshot: Snapshot) {
    known = snapshot.nodes.filter { $0.value.record != nil }
    queued = snapshot.queued
  }

  /// Returns the changes of other devices since the last snapshot. A node that was queued on this device has changed
  /// because this device has sent it.
  package mutating func update(_ snapshot: Snapshot, at now: UInt64) -> [RemoteEvent] {
    let own = queued.union(snapshot.queued)
    queued = snapshot.queued
    var events: [RemoteEvent] = []
    for (uuid, node) in snapshot.nodes.sorted(by: { $0.value.path < $1.value.path }) where node.record != nil {
      if !own.contains(uuid) { events += Self.events(from: known[uuid], to: node, at: now) }
      if !queued.contains(uuid) { known[uuid] = node }
    }
    for (uuid, node) in known.sorted(by: { $0.value.path < $1.value.path }) where snapshot.nodes[uuid] == nil {
      if !own.contains(uuid) { events.append(Self.event(.deleted, node, at: now)) }
      known[uuid] = nil
    }
    return events
  }

  private static func events(from old: Node?, to node: Node, at now: UInt64) -> [RemoteEvent] {
    guard let old else { return [event(.new, node, at: now)] }
    // The descendants of a moved folder have other paths, but the same records.
    guard old.record != node.record else { return [] }
    var events: [RemoteEvent] = []
    if old.path != node.path { events.append(event(.moved, node, from: old.path, at: now)) }
    if old.data != node.data { events.append(event(.modified, node, at: now)) }
    return events.isEmpty ? [event(.changed, node, at: now)] : events
  }

  private static func event(_ kind: RemoteEvent.Kind, _ node: Node, from: String? = nil, at now: UInt64) -> RemoteEvent
  {
    RemoteEvent(kind, path: node.path, from: from, cloudID: node.cloudID, size: node.size, at: now)
  }
}

extension SeenTree.Node {
  init(_ entry: TreeEntry) {
    let node = entry.node
    self.init(
      path: entry.path.fullPath(), cloudID: node.cloudID, size: node.cloudDataInfo?.dataSize, record: node.eTag_rcrd,
      data: node.eTag_data)
  }
}
