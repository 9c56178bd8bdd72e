internal import Hummingbird
internal import Logging
internal import ServiceLifecycle

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The Unix socket on which the operator's commands reach a running server.
package struct AdminSocket: Sendable {
  /// Longer paths do not fit into a socket's address on all systems.
  package static let maximumPathBytes = 103
  /// The name of the socket in a data folder.
  package static let defaultName = "admin.sock"

  let core: ServerCore
  let path: String

  /// Serves until the task is cancelled or its service group shuts down gracefully. If it fails, the server still serves
  /// its clients.
  func run() async {
    // A server that was killed leaves its socket behind. The lock of the stores keeps other servers away.
    removeSocket()
    let application = Application(
      router: RouteTable.router(for: core, AdminRoutes.all),
      configuration: ApplicationConfiguration(address: .unixDomainSocket(path: path), serverName: nil),
      onServerRunning: { _ in restrictAccess() }, logger: Server.groupLogger(core.logger))
    do { try await application.run() } catch is CancellationError {} catch {
      core.logger.error("the socket for zdc-server admin cannot be used", metadata: ["path": "\(path)"])
    }
    removeSocket()
  }

  /// Removes nothing but a socket: the operator may have named another file by mistake.
  private func removeSocket() {
    let type = (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType
    guard type == .typeSocket else { return }
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The server's umask has done so already; a program that embeds a server may have another one.
  private func restrictAccess() {
    do {
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    } catch { core.logger.error("others may be able to open the socket for zdc-server admin") }
  }
}
