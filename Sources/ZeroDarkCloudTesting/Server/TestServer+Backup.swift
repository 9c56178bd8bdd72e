internal import Foundation

extension TestServer {
  /// A copy of all of the server's files, like an operator's backup.
  public struct Backup: Sendable {
    let folder: URL
  }

  /// Stops the server, copies its files, and starts it again.
  ///
  /// ```swift
  /// let backup = try await server.backup()
  /// try await a.sync()
  /// try await server.restore(backup)  // the server has lost the last commits
  /// ```
  public func backup() async throws -> Backup {
    try await stop()
    let copy = folder.deletingLastPathComponent().appendingPathComponent("backup-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    try await restart()
    return Backup(folder: copy)
  }

  /// Replaces the server's state with an earlier one, as an operator does after a loss, or an attacker at any time.
  ///
  /// ```swift
  /// let old = try await server.backup()
  /// try await a.edit("/notes", "milk")
  /// try await a.sync()
  /// try await server.restore(old)  // the server has lost a commit that this device has verified
  /// ```
  public func restore(_ backup: Backup) async throws {
    try await stop()
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.copyItem(at: backup.folder, to: folder)
    try await restart()
  }
}

extension TestServer {
  /// Starts another server from a backup of this one, on a separate port and under this server's identity. The states
  /// of the two servers then diverge.
  ///
  /// Devices with an account on this server can log in there; ``HostileServer/lead(_:to:)`` leads them to it.
  package func fork(_ backup: Backup, clock: ManualClock) async throws -> TestServer {
    let temporary = try TemporaryFolder()
    let folder = temporary.url.appendingPathComponent("server", isDirectory: true)
    try FileManager.default.copyItem(at: backup.folder, to: folder)
    return try await TestServer.start(
      on: folder, in: temporary, clock: clock, origins: origins + [url.absoluteString])
  }
}
