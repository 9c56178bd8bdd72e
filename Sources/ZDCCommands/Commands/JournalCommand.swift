internal import Foundation
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// `zdc journal`: the resolutions of conflicts with changes of other devices.
package enum JournalCommand {
  /// `{"at","canUndo","cloudID","id","kind","nodeID","path"?,"undoneAt"?,"writer"?}`
  struct Line: Encodable, Sendable {
    var id: String
    var kind: String
    var at: String
    /// The node's current path, otherwise its last one.
    var path: String?
    var nodeID: String
    var cloudID: String
    /// The user who made the version in the cloud.
    var writer: String?
    var undoneAt: String?
    var canUndo: Bool

    /// `home:/a 2: both devices changed the content: the cloud's version won`
    var text: String {
      let meaning = ZDCMergeJournalEntry.Kind(rawValue: kind)?.meaning ?? kind
      return "\(path.map(ShownName.text) ?? "a removed node"): \(meaning)"
    }

    init(_ entry: ZDCMergeJournalEntry) {
      id = entry.id.uuidString.lowercased()
      kind = entry.kind.rawValue
      at = entry.date.formatted(.iso8601)
      path = (entry.result.path ?? entry.mine.path)?.fullPath()
      nodeID = entry.nodeID
      cloudID = entry.cloudID
      writer = entry.cloudWriterID
      undoneAt = entry.undoneAt?.formatted(.iso8601)
      canUndo = entry.undoneAt == nil && entry.hasSomethingToUndo
    }
  }

  /// The line's fields, and `"base","mine","theirs","result"`, each `{"cloudID"?,"eTag"?,"isDeleted","path"?}`,
  /// `"isShortened"`, and `"conflicts":[{"base"?,"kind","mine"?,"path","result"?,"theirs"?}]` with JSON as text.
  struct Report: Encodable, Sendable {
    struct Side: Encodable, Sendable {
      var path: String?
      var eTag: String?
      var cloudID: String?
      var isDeleted: Bool

      init(_ side: ZDCMergeJournalEntry.Side) {
        path = side.path?.fullPath()
        eTag = side.eTag
        cloudID = side.cloudID
        isDeleted = side.isDeleted
      }

      var text: String {
        if isDeleted { return "deleted" }
        let parts = [path.map(ShownName.text), eTag.map { "content \($0)" }, cloudID.map { "node \($0)" }]
        let known = parts.compactMap(\.self)
        return known.isEmpty ? "-" : known.joined(separator: ", ")
      }
    }

    struct Conflict: Encodable, Sendable {
      var kind: String
      var path: [String]
      var base: String?
      var mine: String?
      var theirs: String?
      var result: String?

      init(_ conflict: ZDCMergeConflict) {
        func text(_ json: Data?) -> String? { json.map { String(decoding: $0, as: UTF8.self) } }
        kind = conflict.kind.rawValue
        path = conflict.path
        base = text(conflict.base)
        mine = text(conflict.mine)
        theirs = text(conflict.theirs)
        result = text(conflict.result)
      }
    }

    var line: Line
    var base: Side
    var mine: Side
    var theirs: Side
    var result: Side
    var conflicts: [Conflict]
    var isShortened: Bool

    private enum CodingKeys: CodingKey {
      case base, mine, theirs, result, conflicts, isShortened
    }

    init(_ entry: ZDCMergeJournalEntry) {
      line = Line(entry)
      base = Side(entry.base)
      mine = Side(entry.mine)
      theirs = Side(entry.theirs)
      result = Side(entry.result)
      conflicts = entry.report?.conflicts.map(Conflict.init) ?? []
      isShortened = entry.isShortened
    }

    func encode(to encoder: any Encoder) throws {
      try line.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(base, forKey: .base)
      try container.encode(mine, forKey: .mine)
      try container.encode(theirs, forKey: .theirs)
      try container.encode(result, forKey: .result)
      try container.encode(conflicts, forKey: .conflicts)
      try container.encode(isShortened, forKey: .isShortened)
    }
  }

  /// `{"done","durableMs"?,"id","kind","otherPath"?,"path"?,"queuedMs"}`
  struct UndoReport: Encodable, Sendable {
    var id: String
    var kind: String
    /// The node's path, or its last path before it was removed.
    var path: String?
    /// The path of the other node that the entry names.
    var otherPath: String?
    /// The change, as human-readable text.
    var done: String
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  // MARK: Listing

  /// - Parameter path: Lists only the entries of this node.
  package static func list(_ options: ProfileOptions, path text: String?, limit: Int?) async throws {
    let path = try text.map(NodePath.parse)
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let lines = try await opened.reader.read { transaction in
      let tree = try opened.cloud(transaction, user)
      let node = try path.map { try tree.requireNode(at: $0).uuid }
      return tree.cloud.mergeJournal(forNodeID: node, limit: limit ?? .max).map(Line.init)
    }
    for line in lines {
      try options.output.object(line)
      let name = line.path.map(ShownName.text) ?? "-"
      let state = line.undoneAt == nil ? "" : "  (undone)"
      options.output.line("\(line.id.prefix(8))  \(line.at)  \(line.kind)  \(name)\(state)")
    }
    if lines.isEmpty { options.output.note("no conflicts") }
    try await opened.close()
  }

  package static func show(_ options: ProfileOptions, id: String) async throws {
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let entry = try await opened.reader.read { transaction in try find(id, opened.cloud(transaction, user).cloud) }
    let report = Report(entry)
    try options.output.object(report)
    for line in lines(report, entry) { options.output.line(line) }
    try await opened.close()
  }

  private static func lines(_ report: Report, _ entry: ZDCMergeJournalEntry) -> [String] {
    var lines = [
      "\(report.line.id)  \(report.line.at)", "  \(entry.kind.meaning)", "  base: \(report.base.text)",
      "  here: \(report.mine.text)", "  in the cloud: \(report.theirs.text)", "  result: \(report.result.text)",
    ]
    if let writer = report.line.writer { lines.append("  changed in the cloud by: \(writer)") }
    for conflict in report.conflicts {
      let path = conflict.path.map(ShownName.text).joined(separator: " > ")
      lines.append("  \(path): here \(shown(conflict.mine)), in the cloud \(shown(conflict.theirs))")
    }
    if report.isShortened { lines.append("  (shortened: too large to keep in full)") }
    if let undone = report.line.undoneAt { lines.append("  undone: \(undone)") }
    return lines
  }

  private static func shown(_ json: String?) -> String { json.map(ShownName.text) ?? "nothing" }

  /// Finds an entry by its id or by a unique prefix of it.
  fileprivate static func find(_ id: String, _ cloud: ZDCCloudReadTransaction) throws -> ZDCMergeJournalEntry {
    if let uuid = UUID(uuidString: id), let entry = cloud.mergeJournalEntry(id: uuid) { return entry }
    let found = cloud.mergeJournal().filter { $0.id.uuidString.lowercased().hasPrefix(id.lowercased()) }
    guard let entry = found.first, found.count == 1, id.count >= 4 else {
      let message = found.count > 1 ? "more than one entry begins with this id" : "no such entry in the journal"
      throw CommandError(
        .noInput, "entryNotFound", "\(ShownName.text(id)): \(message)", hint: "list the entries with zdc journal")
    }
    return entry
  }

  // MARK: Undoing

  package static func undo(_ options: ProfileOptions, id: String, queuesOnly: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    var (report, nodes) = try await opened.connection.write { transaction in
      try opened.cloud(transaction, engine.user).undo(id)
    }
    report.queuedMs = WallClock.milliseconds
    if !queuesOnly {
      let progress = ProgressDisplay(
        ProgressLine(verb: "undo", itemsTotal: nodes.count), isEnabled: options.output.showsProgress)
      defer { progress.finish() }
      try await engine.settle(NodeSet(nodes), progress: progress)
      report.durableMs = WallClock.milliseconds
    }
    try options.output.object(report)
    options.output.note("undone: \(report.done)")
    try await opened.close()
  }
}

extension Engine {
  /// The ids of the newest entries.
  func journal() async throws -> Set<String> {
    Set(try await journalLines().map(\.id))
  }

  /// Returns the entries written since then, oldest first.
  func journal(after known: Set<String>) async throws -> [JournalCommand.Line] {
    try await journalLines().filter { !known.contains($0.id) }.reversed()
  }

  private func journalLines() async throws -> [JournalCommand.Line] {
    try await opened.reader.read { [opened, user] transaction in
      try opened.cloud(transaction, user).cloud.mergeJournal(forNodeID: nil, limit: .max).map(JournalCommand.Line.init)
    }
  }
}

extension WritableTree {
  /// Undoes an entry of the journal, including the effect on the nodes' file records.
  ///
  /// - Returns: The report, and the uuids of the nodes that were changed.
  fileprivate func undo(_ id: String) throws -> (JournalCommand.UndoReport, Set<String>) {
    let entry = try JournalCommand.find(id, cloud)
    let before = path(entry.nodeID)
    if entry.kind == .deletedInCloud, entry.undoneAt == nil { try requireNothingBelow(entry.nodeID, before) }
    _ = try writable.undo(entry)
    if cloud.node(id: entry.nodeID) == nil { forget(entry.nodeID) }
    let (path, other) = (path(entry.nodeID), entry.otherNodeID.flatMap(path))
    let report = JournalCommand.UndoReport(
      id: entry.id.uuidString.lowercased(), kind: entry.kind.rawValue, path: path ?? before, otherPath: other,
      done: entry.kind.undone(from: before, to: path, other: other), queuedMs: 0)
    return (report, Set([entry.nodeID, entry.otherNodeID].compactMap(\.self)))
  }

  private func path(_ uuid: String) -> String? { cloud.path(forNodeID: uuid)?.fullPath() }

  /// Throws if the folder is not empty. It was deleted in the cloud and kept here; undoing that would also delete its
  /// present children, including other devices' files.
  private func requireNothingBelow(_ uuid: String, _ path: String?) throws {
    let count = try uuids(atOrBelow: uuid).count - 1
    guard count > 0 else { return }
    let shown = ShownName.text(path ?? "the folder")
    throw CommandError(
      .usage, "notEmpty", "\(shown) contains \(Amounts.count(count, "node")); nothing was undone",
      hint: "remove it and its descendants with zdc rm --recursive \(shown)")
  }
}

extension ZDCMergeJournalEntry.Kind {
  /// Describes the change that undoing the entry made.
  fileprivate func undone(from before: String?, to path: String?, other: String?) -> String {
    let (before, path) = (
      ShownName.text(before ?? "a removed node"), ShownName.text(path ?? before ?? "a removed node")
    )
    let others = other.map { ShownName.text($0) }
    switch self {
    case .renamed, .moveDropped:
      return "\(before) is \(path) now" + (others.map { ", and the other device's node is \($0)" } ?? "")
    case .cloudWon:
      return others.map { "\($0) has this device's version, and \(path) the other one" }
        ?? "\(path) is restored as it was here"
    case .deletedInCloud: return "\(before) is removed, as on the other device"
    case .merged, .deletedHere, .accessLost: return path
    }
  }
}

extension ZDCMergeJournalEntry {
  /// Whether the framework can restore the losing version; it does not store the files' content.
  fileprivate var hasSomethingToUndo: Bool {
    switch kind {
    case .merged: report?.lost != nil
    case .cloudWon: otherNodeID != nil || content != nil
    case .renamed, .moveDropped: mine.path != nil
    case .deletedInCloud: !result.isDeleted
    case .deletedHere, .accessLost: false
    }
  }
}

extension ZDCMergeJournalEntry.Kind {
  fileprivate var meaning: String {
    switch self {
    case .merged: "both devices changed the content: merged"
    case .cloudWon: "both devices changed the content: the cloud's version won"
    case .renamed: "the name was taken in the cloud: the local node was renamed"
    case .moveDropped: "both devices moved or renamed it, or its new folder was deleted: the cloud's path won"
    case .deletedInCloud: "another device deleted it while changes were queued here"
    case .deletedHere: "deleted here while another device changed it"
    case .accessLost: "changes were queued here when access to the tree ended"
    }
  }
}
