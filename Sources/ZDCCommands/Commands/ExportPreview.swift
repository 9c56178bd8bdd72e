internal import ZeroDarkCloud

/// The effect of an export on each file, for `zdc get --dry-run`. Reads the target folder and writes nothing.
struct ExportPreview {
  /// `{"change","path"}`
  struct Line: Sendable, Hashable, Encodable {
    /// `new`; `replaced`; `left`, an existing file that differs, or something of another kind; `missing`, without content in the cloud.
    var change: String
    var path: String

    var text: String {
      change + String(repeating: " ", count: max(1, 9 - change.count)) + ShownName.text(path)
    }
  }

  private(set) var lines: [Line] = []
  /// The number of bytes to fetch.
  private(set) var bytes: UInt64 = 0
  private(set) var unchanged = 0
  /// Folders in whose place something else is, and all nodes below them.
  private var blocked: Set<ExportPlan.Index> = []

  /// Whether the export would leave nothing out.
  var isComplete: Bool { lines.allSatisfy { $0.change == "new" || $0.change == "replaced" } }

  mutating func add(_ entries: [ExportEntry], of plan: ExportPlan, in folder: String, overwrites: Bool) throws {
    for entry in entries where entry.node.trunk == nil {
      guard try !isBlocked(entry.index, of: plan, in: folder) else { continue }
      let isFolder = plan.isFolder(entry.index) || entry.record?.kind == .folder
      let size = entry.node.cloudDataInfo?.dataSize ?? 0
      guard !isFolder || size > 0 else { continue }
      try add(entry, Self.path(folder, plan.dataPlace(entry.index)), size, overwrites: overwrites)
    }
  }

  private mutating func isBlocked(_ index: ExportPlan.Index, of plan: ExportPlan, in folder: String) throws -> Bool {
    if let parent = plan.parent(index), blocked.contains(parent) {
      blocked.insert(index)
      return true
    }
    guard plan.isFolder(index) else { return false }
    let path = Self.path(folder, plan.place(index))
    guard let kind = try FileAttributes.of(path)?.kind, kind != .folder else { return false }
    blocked.insert(index)
    lines.append(Line(change: "left", path: path))
    return true
  }

  private static func path(_ folder: String, _ names: [String]) -> String {
    let path = names.joined(separator: "/")
    if folder.isEmpty || folder == "." || folder == "./" { return path }
    return folder.hasSuffix("/") ? folder + path : folder + "/" + path
  }

  private mutating func add(_ entry: ExportEntry, _ path: String, _ size: UInt64, overwrites: Bool) throws {
    guard let eTag = entry.node.eTag_data else { return lines.append(Line(change: "missing", path: path)) }
    guard let facts = try FileAttributes.of(path) else {
      bytes += size
      return lines.append(Line(change: "new", path: path))
    }
    if let record = entry.record, record.eTag == eTag, record.isHere(facts, overwriting: overwrites) {
      unchanged += 1
      return
    }
    let isReplaced = overwrites && facts.kind != .folder
    if isReplaced { bytes += size }
    lines.append(Line(change: isReplaced ? "replaced" : "left", path: path))
  }

  func show(_ output: Output) throws {
    for line in lines {
      try output.object(line)
      output.line(line.text)
    }
    let count = lines.count { $0.change == "new" || $0.change == "replaced" }
    output.note("would get \(Amounts.count(count, "file")) (\(Amounts.bytes(bytes))), \(unchanged) unchanged")
  }
}
