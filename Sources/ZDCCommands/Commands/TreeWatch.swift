internal import ZeroDarkCloud

/// Watches the tree from a process that does not run the engine, by comparing snapshots after each commit of the
/// process that does.
struct TreeWatch {
  let engine: Engine
  let output: Output

  struct Seen: Sendable, Hashable {
    var path: String
    var cloudID: String
    var record: String?
    var data: String?
    var size: UInt64?
  }

  func run() async throws {
    var before = try await snapshot()
    let watcher = engine.opened.databaseManager.changeWatcher
    _ = try await watcher.poll()
    output.note("another zdc process syncs this profile; showing the changes that it pulls")
    while !Task.isCancelled {
      try await Task.sleep(for: .milliseconds(25))
      guard try await watcher.poll() else { continue }
      let after = try await snapshot()
      for event in Self.events(from: before, to: after, at: WallClock.milliseconds) { SyncCommand.tell(event, output) }
      before = after
    }
  }

  private func snapshot() async throws -> [String: Seen] {
    try await engine.opened.reader.read { [engine] transaction in
      let tree = try engine.opened.cloud(transaction, engine.user)
      let home = ZDCTreesystemPath(pathComponents: [])
      guard try tree.node(at: home) != nil else { return [:] }
      var seen: [String: Seen] = [:]
      for entry in try tree.subtree(at: home) where entry.node.trunk == nil && entry.state == "synced" {
        let node = entry.node
        seen[node.uuid] = Seen(
          path: entry.path.fullPath(), cloudID: node.cloudID, record: node.eTag_rcrd, data: node.eTag_data,
          size: node.cloudDataInfo?.dataSize)
      }
      return seen
    }
  }

  /// Returns the changes between two snapshots. Pure.
  static func events(from before: [String: Seen], to after: [String: Seen], at now: UInt64) -> [RemoteEvent] {
    var events: [RemoteEvent] = []
    for (uuid, node) in after.sorted(by: { $0.value.path < $1.value.path }) {
      func event(_ kind: RemoteEvent.Kind, from: String? = nil) -> RemoteEvent {
        RemoteEvent(kind, path: node.path, from: from, cloudID: node.cloudID, size: node.size, at: now)
      }
      guard let old = before[uuid] else {
        events.append(event(.new))
        continue
      }
      if old.path != node.path { events.append(event(.moved, from: old.path)) }
      if old.data != node.data { events.append(event(.modified)) }
    }
    for (uuid, node) in before.sorted(by: { $0.value.path < $1.value.path }) where after[uuid] == nil {
      events.append(RemoteEvent(.deleted, path: node.path, cloudID: node.cloudID, size: node.size, at: now))
    }
    return events
  }
}
