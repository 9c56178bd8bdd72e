import ArgumentParser
import ZDCServer

/// `zdc-server admin`.
struct Admin: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Look at the accounts of a running server, suspend them, and set their quotas.",
    discussion: """
      Speaks to the running server by a Unix socket in its data folder, which only the user who runs the server can open. \
      Accounts are named by their IDs: the server knows no other name.

      EXAMPLES
        zdc-server admin users --config /etc/zdc/server.json
        zdc-server admin users --data /var/lib/zdc
        zdc-server admin suspend USER --data /var/lib/zdc
        zdc-server admin quota USER 50000000000 --data /var/lib/zdc

      \(ExitStatus.help)
      """,
    subcommands: [
      AdminUsers.self, AdminShow.self, AdminSuspend.self, AdminResume.self, AdminSetQuota.self, AdminSessionsOf.self,
      AdminInvitesOf.self,
    ])
}

/// Where the running server listens.
struct AdminOptions: ParsableArguments {
  @Option(name: .long, help: "The server's configuration file, which says where its socket is.")
  var config: String?

  @Option(name: .long, help: "The server's data folder.")
  var data: String?

  @Option(name: .long, help: "The server's --admin-socket. (default: admin.sock in the data folder)")
  var socket: String?

  @Flag(name: .long, help: "One JSON object per line.")
  var json = false

  func validate() throws {
    guard data != nil || socket != nil else { throw ValidationError("give --config, --data or --socket") }
  }

  var path: String { socket ?? "\(data ?? "")/\(AdminSocket.defaultName)" }
}

/// Commands that ask a running server.
protocol AdminCommand: AsyncParsableCommand {
  var options: AdminOptions { get }
  func run(_ server: AdminClient) async throws
}

extension AdminCommand {
  func run() async throws {
    do {
      try await run(AdminClient(socket: options.path))
    } catch let failure as Failure {
      failure.report()
      throw failure.status.code
    }
  }
}
