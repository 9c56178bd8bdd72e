internal import Foundation
internal import ZDCProtocol
internal import ZeroDarkCloud

/// `zdc get`: nodes out of the tree, into files and folders.
package struct GetCommand: Sendable {
  package var path: String
  package var destination: String?
  package var overwrites: Bool
  package var policy: ExportNamePolicy
  package var isOffline: Bool

  package init(path: String, destination: String?, overwrites: Bool, policy: ExportNamePolicy, isOffline: Bool) {
    self.path = path
    self.destination = destination
    self.overwrites = overwrites
    self.policy = policy
    self.isOffline = isOffline
  }

  /// `{"bytes","exists","failed","files","folders","renamed","unchanged","withoutContent"}`
  package struct Report: Encodable, Sendable {
    package var files = 0
    package var folders = 0
    package var bytes: UInt64 = 0
    /// Files that are here already, as they are in the tree.
    package var unchanged = 0
    /// Files that are here, differ, and were not overwritten.
    package var exists: [String] = []
    /// Names that had to change to be safe here.
    package var renamed: [Renamed] = []
    /// Nodes whose content is not in the cloud yet.
    package var withoutContent: [String] = []
    package var failed: [Failed] = []

    package struct Renamed: Encodable, Sendable, Hashable {
      package var name: String
      package var file: String
    }

    package struct Failed: Encodable, Sendable, Hashable {
      package var path: String
      package var code: String
      package var message: String
    }

    var isComplete: Bool { exists.isEmpty && failed.isEmpty }
  }

  package func run(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !isOffline { try await pull(engine) }
    // Taking out what is here goes on; but nobody is to think that it is the newest.
    _ = try await engine.warnOfFrozen()
    let path = try NodePath.parse(path)
    let nodes = try await subtree(path, engine)
    if destination == "-" {
      try await GetToOutput(opened: opened).run(nodes, path)
    } else {
      try await export(nodes, path, engine, options.output)
    }
    try await opened.close()
  }

  /// A tree that has to be frozen now can be taken out like one that is frozen already.
  private func pull(_ engine: Engine) async throws {
    do {
      try await engine.pull()
    } catch let error as ZDCSecurityError {
      guard try await !engine.frozen().isEmpty else { throw error }
    }
  }

  private func subtree(_ path: ZDCTreesystemPath, _ engine: Engine) async throws -> [TreeEntry] {
    try await engine.opened.reader.read { transaction in
      try engine.opened.cloud(transaction, engine.user).subtree(at: path)
    }
  }

  private func export(
    _ nodes: [TreeEntry], _ path: ZDCTreesystemPath, _ engine: Engine, _ output: Output
  ) async throws {
    let line = ProgressLine(verb: "get")
    let progress = ProgressDisplay(line, isEnabled: output.showsProgress)
    let export = try ExportRun(
      opened: engine.opened, user: engine.user, nodes: nodes, place: place(of: path), policy: policy,
      overwrites: overwrites, progress: progress)
    let report: Report
    do {
      defer { progress.finish() }
      report = try await export.run()
    }
    try show(report, output)
    if !report.isComplete { throw SilentExit(.failure) }
  }

  /// Where the node goes: a folder that exists and a name in it, or, for a trunk, the folder itself.
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
      output.note("\(ShownName.text(renamed.name)) is \(ShownName.text(renamed.file)) here: its name is not safe")
    }
    for path in report.withoutContent { output.note("\(ShownName.text(path)): no content in the cloud yet") }
    for path in report.exists {
      output.warning("\(ShownName.text(path)) exists and differs, left alone (--overwrite to replace it)")
    }
    for failed in report.failed { output.warning("\(ShownName.text(failed.path)): \(failed.message)") }
    output.note(
      "got \(Amounts.count(report.files, "file")) (\(Amounts.bytes(report.bytes))) in "
        + "\(Amounts.count(report.folders, "folder")), \(report.unchanged) unchanged")
  }
}
