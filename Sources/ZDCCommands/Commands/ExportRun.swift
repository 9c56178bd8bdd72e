internal import Foundation
internal import ZeroDarkCloud

/// One export: plans names, creates folders, fetches content, restores modes and times.
///
/// It writes nothing outside the folder that the user named, replaces existing files only if the user asked for it, and
/// gives a file its name only when it is complete.
final class ExportRun {
  struct Place {
    /// Must exist.
    var folder: String
    /// The name of the top node in that folder; nil puts the children of a trunk directly into the folder.
    var name: String?
    /// Whether the user chose the name; then it is used unchanged.
    var isChosen: Bool
  }

  let opened: OpenProfile
  let user: String
  let overwrites: Bool
  let progress: ProgressDisplay
  let tree: ExportTree
  let staging: StagingFolder
  let plan: ExportPlan
  private let isOfTrunk: Bool
  /// The indices of the nodes that are being fetched.
  private var indexByUUID: [String: ExportPlan.Index] = [:]
  var report = GetCommand.Report()
  let records: ExportRecords
  /// Folders in whose place something else is, and all folders below them. Nothing is written there.
  private var blocked: Set<ExportPlan.Index> = []
  /// Nodes whose paths are not in the report yet.
  private var failedNodes: [String] = []
  private var nodesWithoutContent: [String] = []
  /// Content larger than this many bytes is written to its file by the download itself.
  static let largeBytes: UInt64 = 60_000
  /// After this many consecutive cut connections, the export ends instead of trying the remaining nodes.
  private static let cutLimit = 3
  var cutsInRow = 0

  init(
    opened: OpenProfile, user: String, path: ZDCTreesystemPath, place: Place, policy: ExportNamePolicy,
    overwrites: Bool, progress: ProgressDisplay
  ) async throws {
    self.opened = opened
    self.user = user
    self.overwrites = overwrites
    self.progress = progress
    let root = try ExportFolder.open(place.folder)
    isOfTrunk = path.isTrunk
    tree = ExportTree(root: root)
    records = ExportRecords(opened: opened, user: user, tree: tree)
    staging = try StagingFolder(in: root)
    let top = Self.top(place, policy)
    plan = try await opened.exportPlan(user, path, top: top, policy: policy, foldsCase: staging.foldsCase())
    if let name = place.name, !place.isChosen, let safe = top.first, Array(name.utf8) != Array(safe.utf8) {
      report.renamed.append(.init(name: name, file: safe))
    }
    report.renamed += plan.renamed.map { .init(name: $0.from, file: $0.to.joined(separator: "/")) }
  }

  static func top(_ place: Place, _ policy: ExportNamePolicy) -> [String] {
    place.name.map { [place.isChosen ? $0 : ExportName.safe($0, policy: policy)] } ?? []
  }

  func run() async throws -> GetCommand.Report {
    defer { staging.remove() }
    do { try await exportAll() } catch {
      // Without room, the next attempt needs it.
      if ErrorReport(error).code != "diskFull" { staging.keepDownloads() }
      staging.remove()
      await records.storeAfterFailure()
      try await nameNodes()
      throw error
    }
    try await nameNodes()
    if !report.failed.isEmpty { staging.keepDownloads() }
    staging.remove()
    for (place, error) in try await records.finish() {
      report.failed.append(.init(path: place.joined(separator: "/"), code: error.code, message: error.message))
    }
    return report
  }

  private func exportAll() async throws {
    try makeFolders()
    progress.update { [plan] line in
      line.itemsTotal = plan.contentCount
      line.bytesTotal = plan.dataBytes
    }
    var large: [ExportPlan.Index] = []
    for start in stride(from: 0, to: plan.indices.count, by: ExportWindow.size) {
      let wanted = try await wantedEntries(start..<min(start + ExportWindow.size, plan.indices.count))
      try await fetchSmall(wanted.filter { !Self.isLarge($0.node) })
      large += wanted.filter { Self.isLarge($0.node) }.map(\.index)
    }
    for start in stride(from: 0, to: large.count, by: ExportWindow.size) {
      let window = large[start..<min(start + ExportWindow.size, large.count)]
      try await fetchLarge(try await opened.exportEntries(user, plan, window))
    }
    try await records.store()
  }

  private static func isLarge(_ node: ZDCNode) -> Bool {
    guard let info = node.cloudDataInfo else { return false }
    return info.dataSize + info.metadataSize + info.thumbnailSize > largeBytes
  }

  /// Adds the paths of the nodes that the report mentions.
  private func nameNodes() async throws {
    for (index, place) in zip(report.failed.indices, try await opened.places(user, failedNodes)) {
      report.failed[index].path = place.path
    }
    for place in try await opened.places(user, nodesWithoutContent) {
      report.withoutContent.append(place.path)
      if place.isQueued { report.queuedHere.insert(place.path) }
    }
  }

  // MARK: Planning

  private func makeFolders() throws {
    for index in plan.indices where plan.isFolder(index) {
      guard try makeFolder(index) else {
        blocked.insert(index)
        continue
      }
      if index > 0 || !isOfTrunk { report.folders += 1 }
    }
  }

  /// - Returns: False if the folder cannot be made. The export continues without what is below it.
  private func makeFolder(_ index: ExportPlan.Index) throws -> Bool {
    guard let parent = plan.parent(index) else {
      _ = try tree.folder(plan.place(index))
      return true
    }
    guard !blocked.contains(parent) else { return false }
    do {
      _ = try tree.folder(plan.place(index))
      return true
    } catch {
      try noteFailure(error, uuid: plan.uuid(index))
      return false
    }
  }

  private func isBlocked(_ index: ExportPlan.Index) -> Bool {
    blocked.contains(index) || plan.parent(index).map(blocked.contains) ?? false
  }

  /// Returns the nodes to fetch: without those that already exist, and without those whose place is taken.
  private func wantedEntries(_ indices: Range<ExportPlan.Index>) async throws -> [ExportEntry] {
    try await opened.exportEntries(user, plan, indices).filter { entry in
      guard entry.node.trunk == nil else { return false }
      guard !isBlocked(entry.index) else {
        if plan.hasContent(entry.index) { advance() }
        return false
      }
      guard let eTag = entry.node.eTag_data else {
        if !plan.isFolder(entry.index) { nodesWithoutContent.append(entry.node.uuid) }
        return false
      }
      do {
        guard try isSettled(entry, entry.record.flatMap { $0.eTag == eTag ? $0 : nil }) else { return true }
      } catch { try noteFailure(error, entry.node) }
      advance()
      return false
    }
  }

  /// Whether there is nothing to fetch for a node: it is here, or its place is taken.
  ///
  /// - Parameter record: What this device knows about the node's current content.
  private func isSettled(_ entry: ExportEntry, _ record: FileRecord?) throws -> Bool {
    let size = entry.node.cloudDataInfo?.dataSize ?? 0
    if size == 0 {
      // Without a record, it may be a folder.
      guard let record else { return false }
      if record.kind == .folder {
        try makeFolder(entry.index, record.metadata)
        return true
      }
      if plan.isFolder(entry.index) { return true }
    }
    let place = plan.dataPlace(entry.index)
    guard let name = place.last, let facts = try tree.folder(place.dropLast().map { $0 }).facts(name) else {
      return false
    }
    if let record, record.isHere(facts, overwriting: overwrites) {
      report.unchanged += 1
      return true
    }
    guard facts.kind != .folder else { throw Self.folderInPlace }
    // A file of equal size may be the same one, from a run that was killed before it could record it.
    if overwrites || (record == nil && facts.kind == .file && facts.size == size) { return false }
    report.exists.append(place.joined(separator: "/"))
    return true
  }

  private static let folderInPlace = CommandError(
    .cannotCreate, "folderInPlace", "a folder is in its place; move it away, or get the file under another name")

  private func makeFolder(_ index: ExportPlan.Index, _ metadata: FileMetadata) throws {
    let place = plan.place(index)
    _ = try tree.folder(place)
    if !plan.isFolder(index) { report.folders += 1 }
    tree.remember(metadata, of: place)
  }

  // MARK: Fetching

  private func fetchSmall(_ wanted: [ExportEntry]) async throws {
    begin(wanted)
    try await fetchSmall(of: wanted.map(\.node))
  }

  func begin(_ wanted: [ExportEntry]) {
    indexByUUID = Dictionary(wanted.map { ($0.node.uuid, $0.index) }, uniquingKeysWith: { first, _ in first })
  }

  private func fetchSmall(of nodes: [ZDCNode]) async throws {
    var fetched: Set<String> = []
    do { try await fetchBatch(nodes, &fetched) } catch let error as TransportError where Self.mayConcernOneNode(error) {
      try await fetchRest(of: nodes.filter { !fetched.contains($0.uuid) }, after: error, hasProgress: !fetched.isEmpty)
    }
  }

  private func fetchBatch(_ nodes: [ZDCNode], _ fetched: inout Set<String>) async throws {
    guard let downloads = opened.zdc.downloadManager else { return }
    for try await download in downloads.downloadContents(of: nodes) {
      do {
        switch try download.content.get() {
        case .memory(let data, let metadata, _):
          try place(download.node, FileMetadata([UInt8](metadata))) { try self.staging.file([UInt8](data)) }
        case .file(let file): try place(file, download.node)
        }
        cutsInRow = 0
      } catch { try noteFailure(error, download.node) }
      fetched.insert(download.node.uuid)
      advance()
      try await records.storeIfMany()
    }
  }

  /// Content that the server cannot deliver cuts off the response for its whole batch; halving the batch finds it.
  private func fetchRest(of nodes: [ZDCNode], after error: TransportError, hasProgress: Bool) async throws {
    if hasProgress { return try await fetchSmall(of: nodes) }
    guard nodes.count > 1 else {
      for node in nodes {
        try noteFailure(error, node)
        advance()
      }
      return
    }
    try await fetchSmall(of: Array(nodes.prefix(nodes.count / 2)))
    try await fetchSmall(of: Array(nodes.dropFirst(nodes.count / 2)))
  }

  private func place(_ file: ZDCCryptoFile, _ node: ZDCNode) throws {
    defer { try? FileManager.default.removeItem(at: file.fileURL) }
    let metadata = FileMetadata([UInt8](try ZDCFileConversion.decryptMetadata(of: file)))
    try place(node, metadata) {
      let (name, path) = self.staging.newPath()
      try ZDCFileConversion.decryptCryptoFile(file, to: URL(fileURLWithPath: path))
      return try self.staging.adopt(name)
    }
  }

  func advance() {
    let done = report.bytes
    progress.update { line in
      line.itemsDone += 1
      line.bytesDone = max(line.bytesDone, done)
    }
  }

  /// Reports content that cannot be fetched, and lets the export continue. Throws errors that affect all content.
  ///
  /// - Parameter cutsBefore: The value of `cutsInRow` when the download began, for concurrent downloads: a cut that
  ///   affects several of them counts once.
  func noteFailure(_ error: any Error, _ node: ZDCNode, cutsBefore: Int? = nil) throws {
    if error is CancellationError { throw error }
    if let error = error as? TransportError {
      cutsInRow = max(cutsInRow, (cutsBefore ?? cutsInRow) + 1)
      guard Self.mayConcernOneNode(error), cutsInRow < Self.cutLimit else { throw error }
    }
    try noteFailure(error, uuid: node.uuid)
  }

  private func noteFailure(_ error: any Error, uuid: String) throws {
    let report = ErrorReport(error)
    if report.code == "diskFull" { throw error }
    self.report.failed.append(.init(path: "", code: report.code, message: report.message))
    failedNodes.append(uuid)
  }

  /// Whether the content of one node may be at fault. The server cannot deliver it, or does not get to its end.
  private static func mayConcernOneNode(_ error: TransportError) -> Bool {
    [.cut, .timeout, .tooSlow].contains(error.code)
  }

  // MARK: Writing entries

  func place(_ node: ZDCNode, _ metadata: FileMetadata?, file: () throws -> StagedFile) throws {
    guard let index = indexByUUID[node.uuid] else { return }
    let size = node.cloudDataInfo?.dataSize ?? 0
    if size == 0, let metadata, metadata.kind == .folder { return try placeFolder(node, index, metadata) }
    let place = plan.dataPlace(index)
    guard let name = place.last else { return }
    if plan.isFolder(index), size == 0 { return }
    let folder = try tree.folder(place.dropLast().map { $0 })
    let staged = try file()
    if let metadata { try staged.restore(metadata) } else { try staged.restoreStandardMode() }
    if try staged.place(in: folder, as: name, overwriting: overwrites) {
      report.files += 1
      report.bytes += size
    } else {
      guard try folder.facts(name)?.kind != .folder else { throw Self.folderInPlace }
      guard staged.equals(name, in: folder, comparesMetadata: metadata != nil) else {
        return report.exists.append(place.joined(separator: "/"))
      }
      report.unchanged += 1
    }
    if metadata != nil { try remember(node, name, in: folder) }
  }

  private func placeFolder(_ node: ZDCNode, _ index: ExportPlan.Index, _ metadata: FileMetadata) throws {
    try makeFolder(index, metadata)
    guard let info = node.cloudDataInfo else { return }
    let record = FileRecord(metadata.withoutSpecialBits, size: 0, eTag: info.eTag)
    records.addFolder(node.uuid, record, at: plan.place(index))
  }

  /// Records the file as it is on this disk: special bits are not restored, and the file system may round times.
  private func remember(_ node: ZDCNode, _ name: String, in folder: ExportFolder) throws {
    guard let info = node.cloudDataInfo, let facts = try folder.facts(name), let metadata = facts.metadata else {
      return
    }
    try folder.flush(name)
    var record = FileRecord(
      metadata, size: info.dataSize, source: AbsolutePath.of(folder.path(of: name)), eTag: info.eTag, isCopy: true)
    record.stamp = facts.stamp
    records.add(node.uuid, record)
  }
}
