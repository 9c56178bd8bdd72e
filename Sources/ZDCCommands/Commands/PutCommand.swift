internal import Foundation
internal import ZeroDarkCloud

/// `zdc put`: files and folders into the tree.
package struct PutCommand: Sendable {
  package var sources: [String]
  package var destination: String?
  package var queuesOnly: Bool
  package var overwrites: Bool
  package var makesParents: Bool

  package init(sources: [String], destination: String?, queuesOnly: Bool, overwrites: Bool, makesParents: Bool) {
    self.sources = sources
    self.destination = destination
    self.queuesOnly = queuesOnly
    self.overwrites = overwrites
    self.makesParents = makesParents
  }

  /// `{"bytes","conflicts","created","durableMs"?,"newerInTree","queuedMs","skipped","unchanged","updated"}`
  package struct Report: Encodable, Sendable {
    package var created = 0
    package var updated = 0
    package var unchanged = 0
    /// Cleartext bytes of what is new or changed.
    package var bytes: UInt64 = 0
    /// Files that differ from the tree although the tree changed since they were last put or got: left alone.
    package var conflicts: [String] = []
    /// Files that were not touched since, while the tree has something newer: left alone.
    package var newerInTree: [String] = []
    package var skipped: [Skipped] = []
    /// When everything was queued, in milliseconds since 1970.
    package var queuedMs: UInt64 = 0
    /// When the server had everything; nothing with `--queue`.
    package var durableMs: UInt64?

    package struct Skipped: Encodable, Sendable, Hashable {
      package var path: String
      package var reason: String
    }
  }

  /// What is to be sent, and where.
  struct Item: Sendable {
    var scan: SourceScan
    var target: ZDCTreesystemPath
    var isSpooled = false
  }

  package func run(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let items = try sources.map { try item($0, opened) }
    let engine = try await Engine(opened)
    opened.app.listen { event in if event.event == .conflict { options.output.warning(event.text) } }
    if !queuesOnly { try await engine.pull() }
    var queue = try await PutQueue(
      opened: opened, user: engine.user, overwrites: overwrites, makesParents: makesParents)
    try await self.queue(items, &queue, options.output)
    var report = queue.report
    report.queuedMs = WallClock.milliseconds
    if !queuesOnly {
      try await settle(engine, queue)
      report.durableMs = WallClock.milliseconds
    }
    try show(report, options.output)
    try await opened.close()
    let isComplete = report.conflicts.isEmpty && !report.skipped.contains { $0.reason == PutQueue.otherKind }
    if !isComplete { throw SilentExit(.failure) }
  }

  private func queue(_ items: [Item], _ queue: inout PutQueue, _ output: Output) async throws {
    let count = items.reduce(0) { $0 + $1.scan.entries.count }
    let progress = ProgressDisplay(ProgressLine(verb: "queue", itemsTotal: count), isEnabled: output.showsProgress)
    defer { progress.finish() }
    for item in items { try await queue.add(item) { done in progress.update { $0.itemsDone += done } } }
  }

  private func settle(_ engine: Engine, _ queue: PutQueue) async throws {
    let bytes = queue.report.bytes + queue.earlierBytes
    let line = ProgressLine(verb: "put", itemsTotal: queue.queuedNodes.count, bytesTotal: bytes)
    let progress = ProgressDisplay(line, isEnabled: engine.opened.output.showsProgress)
    defer { progress.finish() }
    try await engine.settle(queue.queuedNodes, large: queue.largeNodes, progress: progress)
  }

  private func item(_ source: String, _ opened: OpenProfile) throws -> Item {
    if source == "-" { return try spooledItem(opened) }
    let path = try AbsolutePath.followed(source)
    return Item(scan: try SourceScan(path), target: try target(named: AbsolutePath.name(of: source)))
  }

  /// Standard input, kept in a file of ours until it was sent.
  private func spooledItem(_ opened: OpenProfile) throws -> Item {
    guard let destination, !destination.hasSuffix("/") else {
      throw CommandError(.usage, "noName", "standard input has no name", hint: "name the node: zdc put - home:/name")
    }
    let path = try Spool.fill(opened.paths)
    return Item(scan: try SourceScan(path), target: try NodePath.parse(destination), isSpooled: true)
  }

  /// `PATH/` and no path at all take the source's name; `PATH` is the name.
  private func target(named name: String) throws(CommandError) -> ZDCTreesystemPath {
    let path = try NodePath.parse(destination ?? "home:/")
    let isInto = destination.map { $0.hasSuffix("/") } ?? true
    guard isInto, !name.isEmpty else { return path }
    return path.appendingComponent(name)
  }

  private func show(_ report: Report, _ output: Output) throws {
    try output.object(report)
    guard !output.isJSON else { return }
    for path in report.conflicts {
      output.warning(
        "\(ShownName.text(path)): changed here and in the tree, left alone (--overwrite to replace the tree's)")
    }
    for path in report.newerInTree {
      output.note("\(ShownName.text(path)): newer in the tree, left alone (zdc get, or --overwrite)")
    }
    for skipped in report.skipped { output.warning("skipped \(ShownName.text(skipped.path)): \(skipped.reason)") }
    let verb = report.durableMs == nil ? "queued" : "sent"
    output.note(
      "\(verb) \(Amounts.count(report.created + report.updated, "node")) (\(Amounts.bytes(report.bytes))), "
        + "\(report.unchanged) unchanged")
  }
}
