internal import Foundation
internal import ZeroDarkCloud

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// `zdc put`: puts files and folders into the tree.
package struct PutCommand: Sendable {
  package var sources: [String]
  package var destination: String?
  package var queuesOnly: Bool
  package var overwrites: Bool
  package var makesParents: Bool
  package var isDryRun: Bool

  package init(
    sources: [String], destination: String?, queuesOnly: Bool, overwrites: Bool, makesParents: Bool, isDryRun: Bool
  ) {
    self.sources = sources
    self.destination = destination
    self.queuesOnly = queuesOnly
    self.overwrites = overwrites
    self.makesParents = makesParents
    self.isDryRun = isDryRun
  }

  /// `{"bytes","changes"?:[{"change","path"}],"conflicts","created","durableMs"?,"newerInTree","queuedMs","skipped","unchanged","updated"}`
  package struct Report: Encodable, Sendable {
    package var created = 0
    package var updated = 0
    package var unchanged = 0
    /// The cleartext size of new and changed files, in bytes.
    package var bytes: UInt64 = 0
    /// Files that differ from the tree, which has also changed since they were last put or fetched; left alone.
    package var conflicts: [String] = []
    /// Files that have not changed since then, while the tree has a newer version; left alone.
    package var newerInTree: [String] = []
    package var skipped: [Skipped] = []
    /// The changes that a dry run would send.
    package var changes: [Change]?
    /// When everything was queued, in milliseconds since 1970.
    package var queuedMs: UInt64 = 0
    /// When the server had everything; nil with `--queue`.
    package var durableMs: UInt64?

    package struct Change: Encodable, Sendable, Hashable {
      /// `new` or `changed`.
      package var change: String
      package var path: String
    }

    package struct Skipped: Encodable, Sendable, Hashable {
      package var path: String
      package var reason: String
      /// Whether its kind is never put, such as a symbolic link.
      var isByRule = false

      private enum CodingKeys: CodingKey { case path, reason }
    }

    /// One line for each file that is not put.
    var leftOut: [String] {
      conflicts.map {
        "\(ShownName.text($0)): changed here and in the tree; skipped (--overwrite replaces the tree's version)"
      } + skipped.map { "skipped \(ShownName.text($0.path)): \($0.reason)" }
    }

    var isComplete: Bool { conflicts.isEmpty && skipped.allSatisfy(\.isByRule) }
  }

  /// A source to put, and its target.
  struct Item: Sendable {
    var walk: SourceWalk
    var target: ZDCTreesystemPath
    var isSpooled = false
  }

  package func run(_ options: ProfileOptions) async throws {
    let targets = try checkedTargets()
    let opened = try OpenProfile.open(options)
    // Held until nodes refer to the files with pipe input; otherwise another command could remove them.
    let spool = sources.contains("-") ? try SpoolLock(sharing: opened.paths) : nil
    var items: [Item] = []
    let engine: Engine
    var queue: PutQueue
    do {
      for (source, target) in zip(sources, targets) { items.append(try item(source, target, spool, opened.paths)) }
      engine = try await Engine(opened)
      opened.app.listen { event in if event.event == .conflict { options.output.warning(event.text) } }
      if !queuesOnly { try await engine.pull() }
      queue = try await PutQueue(
        opened: opened, user: engine.user, overwrites: overwrites, makesParents: makesParents,
        fetchesKinds: !queuesOnly, isDryRun: isDryRun)
      try await self.queue(items, &queue, options.output)
    } catch {
      // A database that is unreadable now must not hide the original error; a later command removes the files.
      _ = try? await opened.removeUnneededSpool(Self.spooled(items))
      throw error
    }
    try await opened.removeUnneededSpool(Self.spooled(items))
    withExtendedLifetime(spool) {}
    try await finish(engine, queue, options.output)
  }

  private func finish(_ engine: Engine, _ queue: PutQueue, _ output: Output) async throws {
    var report = queue.report
    report.queuedMs = WallClock.milliseconds
    if !queuesOnly, !isDryRun {
      do { try await settle(engine, queue) } catch {
        for line in report.leftOut { output.warning(line) }
        throw error
      }
      report.durableMs = WallClock.milliseconds
    }
    try show(report, output)
    try await engine.opened.close()
    if !report.isComplete { throw SilentExit(.failure) }
  }

  private static func spooled(_ items: [Item]) -> [String] {
    items.filter(\.isSpooled).map { $0.walk.path }
  }

  /// Returns the target of each source.
  private func checkedTargets() throws(CommandError) -> [ZDCTreesystemPath] {
    guard !sources.contains(""), destination != "" else { throw NodePath.empty }
    var targets: [ZDCTreesystemPath] = []
    var taken: Set<String> = []
    for source in sources {
      let path = try target(of: source)
      guard path.isTrunk || taken.insert(path.fullPath()).inserted else {
        throw CommandError(
          .usage, "sameTarget", "two sources have the same path in the tree: \(ShownName.text(path.fullPath()))",
          hint: "nothing was put; put them under different names")
      }
      targets.append(path)
    }
    return targets
  }

  private func queue(_ items: [Item], _ queue: inout PutQueue, _ output: Output) async throws {
    // This walks through all folders a second time, so it is done only if progress is shown.
    let count = output.showsProgress ? try items.reduce(0) { try $0 + $1.walk.count() } : 0
    let progress = ProgressDisplay(ProgressLine(verb: "queue", itemsTotal: count), isEnabled: output.showsProgress)
    defer { progress.finish() }
    let before = queue
    queue = try await queue.opened.requiringTree(queue.user) {
      var queue = before
      for item in items { try await queue.add(item) { done in progress.update { $0.itemsDone += done } } }
      return queue
    }
  }

  private func settle(_ engine: Engine, _ queue: PutQueue) async throws {
    let bytes = queue.report.bytes + queue.earlierBytes
    let line = ProgressLine(verb: "put", itemsTotal: queue.queuedNodes.count, bytesTotal: bytes)
    let progress = ProgressDisplay(line, isEnabled: engine.opened.output.showsProgress)
    defer { progress.finish() }
    try await engine.settle(queue.queuedNodes, large: queue.largeNodes, progress: progress)
  }

  private func item(
    _ source: String, _ target: ZDCTreesystemPath, _ spool: SpoolLock?, _ paths: ProfilePaths
  ) throws -> Item {
    if source == "-", let spool {
      return Item(walk: try SourceWalk(try Spool.fill(spool)), target: target, isSpooled: true)
    }
    let walk = try SourceWalk(try AbsolutePath.followed(source), skipping: paths.profilesFolder)
    return Item(walk: walk, target: target)
  }

  private func target(of source: String) throws(CommandError) -> ZDCTreesystemPath {
    guard source == "-" else { return try target(named: AbsolutePath.name(of: source)) }
    guard let destination, !destination.hasSuffix("/") else {
      throw CommandError(.usage, "noName", "standard input has no name", hint: "name the node: zdc put - home:/name")
    }
    return try NodePath.parse(destination)
  }

  /// `PATH/` or no path takes the source's name; `PATH` is the new name.
  private func target(named name: String) throws(CommandError) -> ZDCTreesystemPath {
    let path = try NodePath.parse(destination ?? "home:/")
    let isInto = destination.map { $0.hasSuffix("/") } ?? true
    guard isInto, !name.isEmpty else { return path }
    return path.appendingComponent(name)
  }

  private func show(_ report: Report, _ output: Output) throws {
    try output.object(report)
    guard !output.isJSON else { return }
    for line in report.leftOut { output.warning(line) }
    for path in report.newerInTree {
      output.note("\(ShownName.text(path)): newer in the tree; skipped (run zdc get, or use --overwrite)")
    }
    for change in report.changes ?? [] {
      output.line("\(change.change == "new" ? "new    " : "changed") \(ShownName.text(change.path))")
    }
    let verb = isDryRun ? "would send" : report.durableMs == nil ? "queued" : "sent"
    output.note(
      "\(verb) \(Amounts.count(report.created + report.updated, "node")) (\(Amounts.bytes(report.bytes))), "
        + "\(report.unchanged) unchanged")
  }
}
