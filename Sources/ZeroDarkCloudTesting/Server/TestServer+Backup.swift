internal import Foundation

extension TestServer {
  /// A copy of all of the server's files, as an operator's backup.
  public struct Backup: Sendable {
    let folder: URL
  }

  /// Stops the server, copies its files, and starts it again.
  public func backup() async throws -> Backup {
    try await stop()
    let copy = folder.deletingLastPathComponent().appendingPathComponent("backup-\(UUID().uuidString)")
    try FileManager.default.copyItem(at: folder, to: copy)
    try await restart()
    return Backup(folder: copy)
  }

  /// Puts an earlier state in the place of the server's own: what an operator does after a loss, or an attacker at will.
  public func restore(_ backup: Backup) async throws {
    try await stop()
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.copyItem(at: backup.folder, to: folder)
    try await restart()
  }
}

extension TestServer {
  /// Starts another server from a backup of this one, on a port of its own, that says it is this one: two servers that
  /// go different ways.
  ///
  /// Devices with an account here log in there; ``HostileServer/lead(_:to:)`` takes them.
  public func fork(_ backup: Backup, clock: ManualClock) async throws -> TestServer {
    let temporary = try TemporaryFolder()
    let folder = temporary.url.appendingPathComponent("server", isDirectory: true)
    try FileManager.default.copyItem(at: backup.folder, to: folder)
    return try await TestServer.start(
      on: folder, in: temporary, clock: clock, origins: origins + [url.absoluteString])
  }
}
