internal import Foundation
internal import ZeroDarkCloud

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Stores input from pipes until it has been sent, in files that only their owner can access.
enum Spool {
  /// Copies standard input into a new file.
  ///
  /// - Parameter lock: Held by the caller until a node refers to the file; otherwise ``OpenProfile/collectSpool()``
  ///   could remove the file first.
  static func fill(_ lock: SpoolLock) throws(CommandError) -> String {
    let path = "\(lock.folder)/\(UUID().uuidString.lowercased())"
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw FileFailure.error(path) }
    defer { close(file) }
    do throws(CommandError) {
      try copy(STDIN_FILENO, file, path)
      guard fsync(file) == 0 else { throw FileFailure.error(path) }
      try lock.storeNames()
    } catch {
      unlink(path)
      throw error
    }
    return path
  }

  private static func copy(_ input: Int32, _ output: Int32, _ path: String) throws(CommandError) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = try Terminal.read(input, &buffer)
      if count == 0 { return }
      try write(buffer[..<count], output, path)
    }
  }

  private static func write(_ bytes: ArraySlice<UInt8>, _ output: Int32, _ path: String) throws(CommandError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(output, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw FileFailure.error(path) }
      rest = rest.dropFirst(count)
    }
  }
}

/// A lock on the folder of ``Spool``: shared by the commands that fill it, exclusive for the one that cleans it up.
final class SpoolLock: Sendable {
  let folder: String
  private let descriptor: Int32

  /// Waits while another process cleans up.
  init(sharing paths: ProfilePaths) throws(CommandError) {
    folder = paths.spoolFolder
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw FileFailure.error(folder) }
    descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileFailure.error(folder) }
    while flock(descriptor, LOCK_SH) != 0 {
      guard errno == EINTR else { throw FileFailure.error(folder) }
    }
  }

  /// - Returns: nil if the folder does not exist or another process has locked it.
  init?(alone paths: ProfilePaths) {
    folder = paths.spoolFolder
    descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    // A failed initializer of a whole object ends with `deinit`, which closes the folder.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// Makes the names of new files durable, before a node refers to one.
  func storeNames() throws(CommandError) {
    guard fsync(descriptor) == 0 else { throw FileFailure.error(folder) }
  }
}

/// The node that needs a file in ``Spool``. Stored in collection ``collection`` under the file's name.
struct SpooledFile: Sendable, Hashable, Codable {
  static let collection = "zdc.spool"

  var path: String
  var nodeUUID: String

  static func store(_ path: String, _ nodeUUID: String, _ transaction: ZDCReadWriteTransaction) {
    transaction.setObject(
      SpooledFile(path: path, nodeUUID: nodeUUID), forKey: AbsolutePath.name(of: path), inCollection: collection)
  }

  /// Removes the entries of a node's files, except the file that its next version needs.
  ///
  /// - Returns: Their paths; the caller deletes the files after the transaction.
  static func take(
    ofNode nodeUUID: String, except needed: String?, _ transaction: ZDCReadWriteTransaction
  ) throws -> [String] {
    var taken: [String] = []
    for key in try transaction.keys(inCollection: collection) {
      let file = try transaction.object(SpooledFile.self, forKey: key, inCollection: collection)
      guard let file, file.nodeUUID == nodeUUID, file.path != needed else { continue }
      transaction.removeObject(forKey: key, inCollection: collection)
      taken.append(file.path)
    }
    return taken
  }
}

extension OpenProfile {
  /// Removes pipe input that no node needs: left by killed commands, or by nodes that were removed or replaced before
  /// they were sent. Does nothing while another process syncs, because it may be reading one of the files.
  func collectSpool() async throws {
    // Most runs find nothing to remove. They skip the sync lock, which would make another command report a busy
    // profile.
    guard try await !unneededSpool(spooledPaths()).isEmpty else { return }
    _ = try await sync.whileSyncing { [self] in
      guard let lock = SpoolLock(alone: paths) else { return }
      try await removeUnneededSpool(spooledPaths())
      withExtendedLifetime(lock) {}
    }
  }

  /// Removes those of the files that no node needs. The caller ensures that no process is about to use one.
  func removeUnneededSpool(_ paths: [String]) async throws {
    let unneeded = try await unneededSpool(paths)
    guard !unneeded.isEmpty else { return }
    try await connection.write { transaction in
      for path in unneeded {
        transaction.removeObject(forKey: AbsolutePath.name(of: path), inCollection: SpooledFile.collection)
      }
    }
    for path in unneeded { unlink(path) }
  }

  private func unneededSpool(_ paths: [String]) async throws -> Set<String> {
    guard !paths.isEmpty else { return [] }
    return try await reader.read { transaction in
      var unneeded: Set<String> = []
      for path in paths where try !transaction.needsSpooled(path) { unneeded.insert(path) }
      guard !unneeded.isEmpty else { return unneeded }
      // A removed file cannot be restored, so all records are checked first.
      try transaction.enumerateKeysAndObjects(inCollection: FileRecord.collection) { (_, record: FileRecord, _) in
        if record.isSpooled, let source = record.source { unneeded.remove(source) }
      }
      return unneeded
    }
  }

  private func spooledPaths() throws -> [String] {
    guard try FileAttributes.of(paths.spoolFolder) != nil else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: paths.spoolFolder).map { "\(paths.spoolFolder)/\($0)" }
  }
}

extension ZDCReadTransaction {
  fileprivate func needsSpooled(_ path: String) throws -> Bool {
    let file = try object(
      SpooledFile.self, forKey: AbsolutePath.name(of: path), inCollection: SpooledFile.collection)
    guard let file else { return false }
    let record = try object(FileRecord.self, forKey: file.nodeUUID, inCollection: FileRecord.collection)
    return record?.isSpooled == true && record?.source == path
  }
}
