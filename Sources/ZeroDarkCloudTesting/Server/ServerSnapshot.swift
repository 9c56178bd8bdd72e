internal import Foundation

/// A copy of everything that a ``TestServer`` held at a moment: what a backup is, or what a hostile server goes back to.
public final class ServerSnapshot: Sendable {
  let temporary: TemporaryFolder
  /// The copied data folder. Nothing writes to it.
  let folder: URL

  fileprivate init(copying source: URL) throws {
    temporary = try TemporaryFolder()
    folder = temporary.url.appendingPathComponent("server", isDirectory: true)
    try FileManager.default.copyItem(at: source, to: folder)
  }
}

extension TestServer {
  /// Copies the data folder. The server stops for that moment.
  public func snapshot() async throws -> ServerSnapshot {
    try await stop()
    let copy = try ServerSnapshot(copying: folder)
    try await restart()
    return copy
  }

  /// Goes back to a snapshot: what came since then is gone.
  public func restore(_ snapshot: ServerSnapshot) async throws {
    try await stop()
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.copyItem(at: snapshot.folder, to: folder)
    try await restart()
  }

  /// Starts another server from a snapshot, on a port of its own, that says it is this one.
  ///
  /// Devices with an account on this server log in there: ``HostileServer/lead(_:to:)`` takes them.
  public func fork(_ snapshot: ServerSnapshot, clock: ManualClock) async throws -> TestServer {
    let temporary = try TemporaryFolder()
    let folder = temporary.url.appendingPathComponent("server", isDirectory: true)
    try FileManager.default.copyItem(at: snapshot.folder, to: folder)
    return try await TestServer.start(
      on: folder, in: temporary, clock: clock, origins: origins + [url.absoluteString])
  }
}
