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
  var records: [(uuid: String, record: FileRecord)] = []
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
    staging = try StagingFolder(in: root)
    let top = Self.top(place, policy)
    plan = try await opened.exportPlan(user, path, top: top, policy: policy, foldsCase: root.foldsCase())
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
      try await nameNodes()
      throw error
    }
    try await nameNodes()
    staging.remove()
    try tree.restoreFolders()
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
    try await storeRecords()
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
      let place = plan.place(index)
      _ = try tree.folder(place)
      if index > 0 || !isOfTrunk { report.folders += 1 }
    }
  }

  /// Returns the nodes to fetch: without those that already exist, and without those that would have to be overwritten.
  private func wantedEntries(_ indices: Range<ExportPlan.Index>) async throws -> [ExportEntry] {
    try await opened.exportEntries(user, plan, indices).filter { entry in
      guard entry.node.trunk == nil else { return false }
      guard let eTag = entry.node.eTag_data else {
        if !plan.isFolder(entry.index) { nodesWithoutContent.append(entry.node.uuid) }
        return false
      }
      guard let record = entry.record, record.eTag == eTag else { return true }
      guard try isHere(record, entry) else { return true }
      advance()
      return false
    }
  }

  private func isHere(_ record: FileRecord, _ entry: ExportEntry) throws -> Bool {
    if record.kind == .folder {
      let own = plan.place(entry.index)
      _ = try tree.folder(own)
      if !plan.isFolder(entry.index) { report.folders += 1 }
      tree.remember(record.metadata, of: own)
      return true
    }
    let place = plan.dataPlace(entry.index)
    guard let name = place.last else { return false }
    guard let facts = try tree.folder(place.dropLast().map { $0 }).facts(name) else { return false }
    if record.describes(facts) {
      report.unchanged += 1
      return true
    }
    guard !overwrites else { return false }
    report.exists.append(place.joined(separator: "/"))
    return true
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
    do { try await fetchBatch(nodes, &fetched) } catch let error as TransportError where error.code == .cut {
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
      if records.count >= 1_000 { try await storeRecords() }
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
      guard error.code == .cut, cutsInRow < Self.cutLimit else { throw error }
    }
    let report = ErrorReport(error)
    if report.code == "diskFull" { throw error }
    self.report.failed.append(.init(path: "", code: report.code, message: report.message))
    failedNodes.append(node.uuid)
  }

  // MARK: Writing entries

  func place(_ node: ZDCNode, _ metadata: FileMetadata?, file: () throws -> StagedFile) throws {
    if metadata?.kind == .folder { return try placeFolder(node, metadata) }
    guard let index = indexByUUID[node.uuid] else { return }
    let place = plan.dataPlace(index)
    guard let name = place.last else { return }
    if plan.isFolder(index), (node.cloudDataInfo?.dataSize ?? 0) == 0 { return }
    let folder = try tree.folder(place.dropLast().map { $0 })
    if !overwrites, try folder.facts(name) != nil { return report.exists.append(place.joined(separator: "/")) }
    let staged = try file()
    if let metadata { try staged.restore(metadata) } else { try staged.restoreStandardMode() }
    guard try staged.place(in: folder, as: name, overwriting: overwrites) else {
      return report.exists.append(place.joined(separator: "/"))
    }
    report.files += 1
    report.bytes += node.cloudDataInfo?.dataSize ?? 0
    remember(node, metadata, file: AbsolutePath.of(folder.path(of: name)), stamp: try folder.facts(name)?.stamp)
  }

  private func placeFolder(_ node: ZDCNode, _ metadata: FileMetadata?) throws {
    guard let index = indexByUUID[node.uuid], let metadata else { return }
    let place = plan.place(index)
    _ = try tree.folder(place)
    if !plan.isFolder(index) { report.folders += 1 }
    tree.remember(metadata, of: place)
    remember(node, metadata)
  }

  private func remember(
    _ node: ZDCNode, _ metadata: FileMetadata?, file: String? = nil, stamp: FileStamp? = nil
  ) {
    guard let metadata, let info = node.cloudDataInfo else { return }
    var record = FileRecord(
      metadata, size: info.dataSize, source: file, eTag: info.eTag, isCopy: file.map { _ in true })
    record.stamp = stamp
    records.append((node.uuid, record))
  }

  /// Stores the records, so that `put` can detect later changes to the files.
  func storeRecords() async throws {
    let due = records
    records = []
    guard !due.isEmpty else { return }
    try await opened.connection.write { [opened, user] transaction in
      let cloud = try opened.cloud(transaction, user)
      for (uuid, record) in due { try cloud.store(record, uuid) }
    }
  }
}
