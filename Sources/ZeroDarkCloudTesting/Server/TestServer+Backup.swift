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
