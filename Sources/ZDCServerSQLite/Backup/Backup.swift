internal import GRDB
internal import ZDCProtocol
package import ZDCServer

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A copy of a server's data in a folder: a SQLite database of one moment, the large content that it names, and a
/// manifest. It has the form of a data folder, whatever stores the server has.
package struct Backup: Sendable {
  /// Describes the copy, as one JSON object in the file `manifest.json`.
  package struct Manifest: Codable, Sendable, Hashable {
    package var version = 1
    package var createdMs: UInt64
    package var databaseBytes: UInt64
    package var databaseSHA256: String
    package var contents: UInt64 = 0
    package var contentBytes: UInt64 = 0
    /// Whether large content is in an object store, which keeps its own copies.
    package var isContentElsewhere = false
    /// Content that this run has added.
    package var addedContents: UInt64 = 0
  }

  private static let pageFiles = 1_000

  package let path: String

  package init(path: String) { self.path = path }

  private var database: String { path + "/zdc.sqlite" }
  private var newDatabase: String { path + "/zdc.sqlite.new" }
  private var manifestPath: String { path + "/manifest.json" }
  private var blobs: String { path + "/blobs" }

  /// Makes a backup, or brings an older one up to date. The server may run.
  ///
  /// If this fails, an older backup is as it was, and the folder has no files that are not complete. Content that was
  /// copied stays for the next run.
  ///
  /// - Parameters:
  ///   - rows: a database elsewhere; nil for the one in the folder.
  ///   - now: the time for the manifest.
  /// - Throws: ``StoreOpenError``; ``BackupFailure``.
  package func make(
    of folder: String, rows: (any RowSource)?, now: UInt64, progress: @escaping @Sendable (CopyProgress) throws -> Void
  ) async throws -> Manifest {
    try begin()
    do { return try await complete(of: folder, rows, now, progress) } catch {
      let failure = Self.isFull(error) ? BackupFailure(.full(path)) : error
      // Without room, a file that stays would keep others from being written.
      do { try removeUnfinished() } catch { throw failure }
      throw failure
    }
  }

  private func complete(
    of folder: String, _ rows: (any RowSource)?, _ now: UInt64,
    _ progress: @escaping @Sendable (CopyProgress) throws -> Void
  ) async throws -> Manifest {
    if let rows { try await copy(rows, progress) } else { try snapshot(folder) }
    try settle()
    var manifest = try self.manifest(now: now)
    if let owner = try ContentFolder.objectStoreOwner(of: folder) {
      manifest.isContentElsewhere = true
      try write(Array(owner.utf8), to: path + "/" + ContentFolder.ownerFile)
    } else {
      try await link(from: folder + "/blobs", &manifest, progress)
    }
    // The manifest comes first, because it marks the folder as a backup: after a kill, the next run may continue.
    try write(Array(try JSONEncoder().encode(manifest)), to: manifestPath)
    try rename(newDatabase, database)
    if !manifest.isContentElsewhere { try await removeOldContent() }
    return manifest
  }

  private func begin() throws {
    do {
      try FileManager.default.createDirectory(
        atPath: blobs, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw StoreOpenError(.cannotCreate, path: path) }
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    guard names.contains("manifest.json") || names.allSatisfy(isOfFirstRun) else { throw BackupFailure(.notEmpty) }
    try removeUnfinished()
  }

  /// Whether there is no room for a file of the backup, or it may not grow.
  private static func isFull(_ error: any Error) -> Bool {
    if let error = error as? DatabaseError { return error.resultCode == .SQLITE_FULL }
    return error is StorageFull || (error as? StoreOpenError)?.isFull == true
  }

  private func removeUnfinished() throws {
    // A run that ended right before its last step has left a manifest of the new database.
    if let manifest = manifest(), try isDatabase(newDatabase, of: manifest) { try rename(newDatabase, database) }
    for suffix in ["", "-wal", "-shm", "-journal"] { try OpenFile.remove(newDatabase + suffix) }
    for file in [manifestPath, "\(path)/\(ContentFolder.ownerFile)"] { try OpenFile.remove(file + Self.partial) }
    for name in try FileManager.default.contentsOfDirectory(atPath: blobs) where name.hasSuffix(Self.partial) {
      try OpenFile.remove("\(blobs)/\(name)")
    }
  }

  /// The end of the name of a file that is being written.
  private static let partial = ".new"

  /// Whether a first run that was killed may have left the file. A data folder always has `zdc.sqlite`, too.
  private func isOfFirstRun(_ name: String) -> Bool {
    let names = ["blobs", "manifest.json.new", ContentFolder.ownerFile, ContentFolder.ownerFile + ".new"]
    return names.contains(name) || name.hasPrefix("zdc.sqlite.new")
  }

  /// Copies the database of one moment. A server that writes meanwhile is not held up.
  private func snapshot(_ folder: String) throws {
    guard DataFolder.exists(folder) else { throw StoreOpenError(.missing, path: folder) }
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    do {
      let source = try DatabaseQueue(path: folder + "/zdc.sqlite", configuration: configuration)
      do {
        let copy = try DatabaseQueue(path: newDatabase)
        try source.backup(to: copy)
        try copy.close()
      } catch { throw StoreOpenError(error, path: newDatabase) }
      try source.close()
    } catch let error as StoreOpenError { throw error } catch { throw StoreOpenError(error, path: folder) }
  }

  private func copy(
    _ rows: any RowSource, _ progress: @escaping @Sendable (CopyProgress) throws -> Void
  ) async throws {
    let target = try SQLiteStore(path: newDatabase, filling: true)
    let copy = StoreCopy(from: rows, to: target, progress: progress)
    guard try await copy.copyRows().isEmpty else { throw BackupFailure(.damaged) }
    try await copy.finish()
    try await target.close()
  }

  /// Removes uploads that have not been committed: their files still change. Leaves one file, for the hash.
  private func settle() throws {
    do {
      let queue = try DatabaseQueue(path: newDatabase)
      try queue.writeWithoutTransaction { db in
        try db.execute(sql: "DELETE FROM parts; DELETE FROM blobs WHERE state < 2")
        try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL")
      }
      try queue.close()
    } catch { throw StoreOpenError(error, path: newDatabase) }
    try OpenFile(newDatabase, .read).synchronize()
  }

  private func manifest(now: UInt64) throws -> Manifest {
    let (digest, bytes) = try Self.digest(of: newDatabase)
    return Manifest(createdMs: now, databaseBytes: bytes, databaseSHA256: digest)
  }

  static func digest(of path: String) throws -> (text: String, bytes: UInt64) {
    let file = try OpenFile(path, .read)
    let size = try file.size()
    var digest = StreamDigest()
    for start in stride(from: 0, to: size, by: 1 << 20) {
      digest.update(try file.read(at: start, count: Int(min(size - start, 1 << 20))))
    }
    return (digest.text, size)
  }

  // MARK: - Content

  private func eachFile(in database: String, _ body: (StoredFile) throws -> Void) async throws {
    let rows = try FolderFiles(database: database)
    var last: BlobID?
    while true {
      let page = try await rows.files(after: last, limit: Self.pageFiles)
      for file in page { try body(file) }
      guard let end = page.last else { return }
      last = end.id
    }
  }

  /// Content never changes once a commit has attached it, so that the copy can be the same file.
  private func link(
    from source: String, _ manifest: inout Manifest, _ progress: (CopyProgress) throws -> Void
  ) async throws {
    var result = manifest
    try await eachFile(in: newDatabase) { file in
      var isNew = false
      for suffix in ["leaves", "content"] {
        let name = "/\(file.id.text).\(suffix)"
        guard !FileManager.default.fileExists(atPath: blobs + name) else { continue }
        isNew = true
        try add(source + name, as: blobs + name)
      }
      result.contents += 1
      result.contentBytes += file.cipherLength
      if isNew { result.addedContents += 1 }
      try progress(CopyProgress(phase: .content, done: result.contentBytes, total: 0))
    }
    try OpenFile(blobs, .folder).synchronize()
    manifest = result
  }

  private func add(_ source: String, as target: String) throws {
    do { return try OpenFile.link(source, to: target) } catch let failure as OpenFile.Failure where failure.isMissing {
      throw BackupFailure(.contentMissing)
    } catch {
      // Another file system, or one without links.
      try copy(source, to: target + Self.partial)
      try rename(target + Self.partial, target)
    }
  }

  private func copy(_ source: String, to target: String) throws {
    try OpenFile.remove(target)
    let (old, new) = (try OpenFile(source, .read), try OpenFile(target, .create))
    let size = try old.size()
    for start in stride(from: 0, to: size, by: 1 << 20) {
      try new.write(try old.read(at: start, count: Int(min(size - start, 1 << 20))), at: start)
    }
    try new.synchronize()
  }

  private func removeOldContent() async throws {
    let rows = try FolderFiles(database: database)
    let names = try FileManager.default.contentsOfDirectory(atPath: blobs)
    for start in stride(from: 0, to: names.count, by: Self.pageFiles) {
      let page = names[start..<min(start + Self.pageFiles, names.count)]
      let ids = page.map { name in name.split(separator: ".").first.flatMap { BlobID(text: $0) } }
      let known = try await rows.knownFiles(ids.compactMap { $0 })
      for (name, id) in zip(page, ids) where id.map({ !known.contains($0) }) ?? true {
        try OpenFile.remove("\(blobs)/\(name)")
      }
    }
  }

  // MARK: - Files

  private func rename(_ old: String, _ new: String) throws {
    try OpenFile.rename(old, to: new)
    try OpenFile(path, .folder).synchronize()
  }

  private func write(_ bytes: [UInt8], to target: String) throws {
    try OpenFile.remove(target + Self.partial)
    let file = try OpenFile(target + Self.partial, .create)
    try file.write(bytes, at: 0)
    try file.synchronize()
    try rename(target + Self.partial, target)
  }
}

// Reading a backup.
extension Backup {
  /// Returns the manifest of a backup whose database is the one that it names.
  ///
  /// - Throws: ``StoreOpenError`` if there is none; ``BackupFailure`` if the database is another one.
  package func verifiedManifest() throws -> Manifest {
    guard FileManager.default.fileExists(atPath: manifestPath) else { throw BackupFailure(.missing(path)) }
    guard let manifest = manifest() else { throw BackupFailure(.damaged) }
    if try isDatabase(database, of: manifest) { return manifest }
    // A run that was killed right before its last step has left the new database under another name.
    guard try isDatabase(newDatabase, of: manifest) else { throw BackupFailure(.damaged) }
    try rename(newDatabase, database)
    return manifest
  }

  /// Returns the manifest that is in the folder; nil if there is none that this version can read.
  private func manifest() -> Manifest? {
    guard let bytes = FileManager.default.contents(atPath: manifestPath),
      let manifest = try? JSONDecoder().decode(Manifest.self, from: bytes), manifest.version == 1
    else { return nil }
    return manifest
  }

  private func isDatabase(_ path: String, of manifest: Manifest) throws -> Bool {
    guard FileManager.default.fileExists(atPath: path) else { return false }
    let (digest, size) = try Self.digest(of: path)
    return digest == manifest.databaseSHA256 && size == manifest.databaseBytes
  }

  /// Verifies every hash of a backup.
  package func check(
    found: @escaping (CheckFinding) -> Void, progress: @escaping (CheckProgress) -> Void
  ) throws -> CheckReport {
    _ = try verifiedManifest()
    return try DataFolder.check(path: path, found: found, progress: progress)
  }

  /// Runs `body` with the rows of the backup in a temporary copy, brought to this version's form. `body` may change it.
  package func withRows<T>(_ body: (any CopyableStore) async throws -> T) async throws -> T {
    let folder = FileManager.default.temporaryDirectory.path + "/zdc-restore-\(BlobID.random().text)"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.copyItem(atPath: database, toPath: folder + "/zdc.sqlite")
    let store = try SQLiteStore(path: folder + "/zdc.sqlite")
    let result: Result<T, any Error>
    do { result = .success(try await body(store)) } catch { result = .failure(error) }
    try await store.close()
    return try result.get()
  }

  /// Returns the ID under which the server owns objects, of a backup whose content is elsewhere.
  package func objectStoreOwner() throws -> String {
    guard let owner = try ContentFolder.objectStoreOwner(of: path) else { throw BackupFailure(.damaged) }
    return owner
  }

  package func contentStore() throws -> FolderBlobStore { try FolderBlobStore(folder: blobs) }
}

/// Why a backup cannot be made or used.
package struct BackupFailure: Error, CustomStringConvertible {
  package enum Reason: Sendable {
    case notEmpty, damaged, contentMissing
    /// The folder has no backup, or a first run has not ended.
    case missing(String)
    /// There is no space left in the folder.
    case full(String)
  }

  package let reason: Reason

  init(_ reason: Reason) { self.reason = reason }

  package var description: String {
    switch reason {
    case .notEmpty: "the folder has something other than a backup"
    case .damaged: "the database is not the one that the manifest names, or is damaged"
    case .contentMissing: "content was missing, or was removed while the backup ran"
    case .missing(let path): "\(path) has no complete backup"
    case .full(let path):
      "there is no space left in \(path); the backup was not made, and an older one there is unchanged"
    }
  }
}
