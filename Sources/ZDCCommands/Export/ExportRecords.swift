internal import ZeroDarkCloud

/// The records of what an export has written, with which `put` and the next `get` recognize it.
final class ExportRecords {
  private let opened: OpenProfile
  private let user: String
  private let tree: ExportTree
  private var records: [(uuid: String, record: FileRecord)] = []
  /// Stored when the folders have their modes and times. Otherwise `put` would send those of an unfinished export.
  private var folders: [(place: [String], uuid: String, record: FileRecord)] = []
  /// The size of the files that ``records`` describes.
  private var bytes: UInt64 = 0

  init(opened: OpenProfile, user: String, tree: ExportTree) {
    (self.opened, self.user, self.tree) = (opened, user, tree)
  }

  func add(_ uuid: String, _ record: FileRecord) {
    records.append((uuid, record))
    bytes += record.size
  }

  func addFolder(_ uuid: String, _ record: FileRecord, at place: [String]) { folders.append((place, uuid, record)) }

  func storeIfMany() async throws {
    if records.count >= 1_000 || bytes >= 64 << 20 { try await store() }
  }

  /// Stores the records when what they describe is on the disk for good. Otherwise, after a power failure, `put` would send
  /// an empty file as a change, and `get` would not fetch it again.
  func store() async throws {
    let due = records
    (records, bytes) = ([], 0)
    guard !due.isEmpty else { return }
    try tree.flush()
    try await opened.store(due, user)
  }

  /// Restores the modes and times of all folders, and stores all records.
  ///
  /// - Returns: The folders for which that failed. They have no records.
  func finish() async throws -> [(place: [String], error: CommandError)] {
    let unrestored = tree.restoreFolders()
    addFolders(except: unrestored.map(\.place))
    try await store()
    return unrestored
  }

  private func addFolders(except unrestored: [[String]]) {
    let unrestored = Set(unrestored)
    records += folders.filter { !unrestored.contains($0.place) }.map { ($0.uuid, $0.record) }
    folders = []
  }

  /// Stores the records of what was written before the export failed or was cancelled.
  func storeAfterFailure() async {
    restoreFoldersAfterFailure()
    let due = records
    records = []
    // Without a record, the next run compares the file with the tree's.
    do { try tree.flush() } catch { return }
    // A cancelled task cannot write to the database, hence another one. An error here must not hide the first one: the
    // next run compares files without a record with the tree's.
    _ = try? await Task { [opened, user] in try await opened.store(due, user) }.value
  }

  /// Restores the folders that are known by now, so that `put` does not send their unfinished modes and times. Those in
  /// which the next run could not write stay as they are.
  private func restoreFoldersAfterFailure() {
    func isWritable(_ mode: UInt16) -> Bool { mode & 0o300 == 0o300 }
    let unrestored = tree.restoreFolders { isWritable($0.mode) }.map(\.place)
    addFolders(except: unrestored + folders.filter { !isWritable($0.record.mode) }.map(\.place))
  }
}

extension OpenProfile {
  fileprivate func store(_ records: [(uuid: String, record: FileRecord)], _ user: String) async throws {
    guard !records.isEmpty else { return }
    try await connection.write { [self] transaction in
      let cloud = try cloud(transaction, user)
      for (uuid, record) in records { try cloud.store(record, uuid) }
    }
  }
}
