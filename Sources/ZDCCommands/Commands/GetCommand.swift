internal import Foundation
internal import ZDCProtocol
internal import ZeroDarkCloud

/// `zdc get`: exports nodes from the tree into files and folders.
package struct GetCommand: Sendable {
  package var path: String
  package var destination: String?
  package var overwrites: Bool
  package var policy: ExportNamePolicy
  package var isOffline: Bool
  package var isDryRun: Bool

  package init(
    path: String, destination: String?, overwrites: Bool, policy: ExportNamePolicy, isOffline: Bool, isDryRun: Bool
  ) {
    self.path = path
    self.destination = destination
    self.overwrites = overwrites
    self.policy = policy
    self.isOffline = isOffline
    self.isDryRun = isDryRun
  }

  /// `{"bytes","exists","failed","files","folders","renamed","unchanged","withoutContent"}`
  package struct Report: Encodable, Sendable {
    package var files = 0
    package var folders = 0
    package var bytes: UInt64 = 0
    /// Files that already exist and match the tree.
    package var unchanged = 0
    /// Existing files that differ and were not overwritten.
    package var exists: [String] = []
    /// Names that had to be changed to be safe on this machine.
    package var renamed: [Renamed] = []
    /// Nodes whose content is not in the cloud yet.
    package var withoutContent: [String] = []
    /// The nodes in `withoutContent` that this device has to send.
    var queuedHere: Set<String> = []
    package var failed: [Failed] = []

    private enum CodingKeys: CodingKey {
      case files, folders, bytes, unchanged, exists, renamed, withoutContent, failed
    }

    package struct Renamed: Encodable, Sendable, Hashable {
      package var name: String
      package var file: String
    }

    package struct Failed: Encodable, Sendable, Hashable {
      package var path: String
      package var code: String
      package var message: String
    }

    /// One line for each node whose content could not be fetched or written.
    var failures: [String] { failed.map { "\(ShownName.text($0.path)): \($0.message)" } }

    var isComplete: Bool { exists.isEmpty && failed.isEmpty && withoutContent.isEmpty }
  }

  package func run(_ options: ProfileOptions) async throws {
    let path = try NodePath.parse(path)
    guard destination != "" else { throw NodePath.empty }
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    var isRefused = false
    if !isOffline { isRefused = try await pull(engine, path) }
    // A frozen tree can be exported, with a warning that it may be outdated.
    try await engine.warnOfFrozen(around: path)
    let unreadable = try await opened.unreadableNodes(engine.user).below(path)
    unreadable.warn(options.output)
    let top = try await top(path, engine, isIncomplete: isRefused)
    var isComplete = true
    if destination == "-", !isDryRun {
      try await GetToOutput(opened: opened).run(top, path)
    } else if isDryRun {
      let preview = try await preview(path, engine)
      try preview.show(options.output)
      isComplete = preview.isComplete
    } else {
      isComplete = try await export(path, engine, options.output)
    }
    try await opened.close()
    if isRefused || !unreadable.isEmpty { throw SilentExit(.security) }
    if !isComplete { throw SilentExit(.failure) }
  }

  /// Pulls. If the server's response does not verify, the tree of the last good pull is exported.
  ///
  /// - Returns: Whether something that the server sent is left out.
  private func pull(_ engine: Engine, _ path: ZDCTreesystemPath) async throws -> Bool {
    do {
      return try await !engine.pull().isEmpty
    } catch let error as ZDCSecurityError {
      // A freeze has its own warning.
      let hasWarning = try await !engine.opened.outdatedTrees(engine.user).around(path).frozen.isEmpty
      if !hasWarning { engine.opened.output.warning(ErrorReport(error).message) }
      return true
    }
  }

  private func top(_ path: ZDCTreesystemPath, _ engine: Engine, isIncomplete: Bool) async throws -> TreeEntry {
    try await engine.opened.requiringTree(engine.user, isIncomplete: isIncomplete) {
      try await engine.opened.reader.read { transaction in
        try engine.opened.cloud(transaction, engine.user).entry(at: path)
      }
    }
  }

  private func preview(_ path: ZDCTreesystemPath, _ engine: Engine) async throws -> ExportPreview {
    let (opened, place) = (engine.opened, place(of: path))
    let plan = try await opened.exportPlan(
      engine.user, path, top: ExportRun.top(place, policy), policy: policy, foldsCase: false)
    var preview = ExportPreview()
    for start in stride(from: 0, to: plan.indices.count, by: ExportWindow.size) {
      let window = start..<min(start + ExportWindow.size, plan.indices.count)
      let entries = try await opened.exportEntries(engine.user, plan, window)
      try preview.add(entries, of: plan, in: place.folder, overwrites: overwrites)
    }
    return preview
  }

  /// - Returns: Whether everything has been exported.
  private func export(
    _ path: ZDCTreesystemPath, _ engine: Engine, _ output: Output
  ) async throws -> Bool {
    let line = ProgressLine(verb: "get")
    let progress = ProgressDisplay(line, isEnabled: output.showsProgress)
    let export = try await ExportRun(
      opened: engine.opened, user: engine.user, path: path, place: place(of: path), policy: policy,
      overwrites: overwrites, progress: progress)
    let report: Report
    do {
      defer { progress.finish() }
      do { report = try await export.run() } catch {
        for line in export.report.failures { output.warning(line) }
        throw error
      }
    }
    try show(report, output)
    return report.isComplete
  }

  /// Returns the destination of the node: an existing folder and a name in it, or, for a trunk, the folder itself.
  private func place(of path: ZDCTreesystemPath) -> ExportRun.Place {
    let destination = destination ?? "./"
    let name = AbsolutePath.name(of: destination)
    let isInto = destination.hasSuffix("/") || name.isEmpty
    if isInto { return ExportRun.Place(folder: destination, name: path.isTrunk ? nil : path.nodeName, isChosen: false) }
    return ExportRun.Place(folder: AbsolutePath.folder(of: destination), name: name, isChosen: true)
  }

  private func show(_ report: Report, _ output: Output) throws {
    try output.object(report)
    guard !output.isJSON else { return }
    for renamed in report.renamed {
      output.note(
        "\(ShownName.text(renamed.name)) was saved as \(ShownName.text(renamed.file)): its name is not safe here")
    }
    for path in report.withoutContent {
      let reason =
        report.queuedHere.contains(path)
        ? "queued on this device and not sent yet" : "no content in the cloud yet; the device that has it must send it"
      output.warning("\(ShownName.text(path)): \(reason)")
    }
    for path in report.exists {
      output.warning("\(ShownName.text(path)) exists and differs; skipped (--overwrite replaces it)")
    }
    for line in report.failures { output.warning(line) }
    output.note(
      "got \(Amounts.count(report.files, "file")) (\(Amounts.bytes(report.bytes))) in "
        + "\(Amounts.count(report.folders, "folder")), \(report.unchanged) unchanged")
  }
}
