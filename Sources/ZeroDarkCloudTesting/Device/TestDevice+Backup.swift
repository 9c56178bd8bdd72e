internal import Foundation

extension TestDevice {
  /// A copy of a device's files.
  public struct Backup: Sendable {
    fileprivate let copy: TemporaryFolder

    fileprivate var folder: URL { copy.url.appendingPathComponent("device", isDirectory: true) }
  }

  /// Closes the database, copies the device's files, and opens it again.
  ///
  /// ```swift
  /// let backup = try await a.backup()
  /// try await a.create("/later")
  /// try await a.restore(backup)  // the device is as it was before
  /// ```
  public func backup() async throws -> Backup {
    try await close()
    let backup = Backup(copy: try TemporaryFolder())
    try FileManager.default.copyItem(at: folder, to: backup.folder)
    try await relaunch()
    return backup
  }

  /// Replaces the device's files with those of a backup, as a restored system does.
  ///
  /// ```swift
  /// let backup = try await a.backup()
  /// try await a.edit("/notes", "milk")
  /// try await a.sync()
  /// try await a.restore(backup)  // the device no longer knows what it has sent
  /// ```
  public func restore(_ backup: Backup) async throws {
    try await close()
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.copyItem(at: backup.folder, to: folder)
    try await relaunch()
  }
}
