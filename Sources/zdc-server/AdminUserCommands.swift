import ArgumentParser
import Foundation
import ZDCProtocol
import ZDCServer

struct AdminUsers: AdminCommand {
  static let configuration = CommandConfiguration(
    commandName: "users", abstract: "List all accounts, with what they store.",
    discussion: """
      EXAMPLES
        zdc-server admin users --data /var/lib/zdc
        zdc-server admin users --data /var/lib/zdc --json
      """)

  @OptionGroup var options: AdminOptions

  func run(_ server: AdminClient) async throws {
    let printer = AdminPrinter(isJSON: options.json)
    var next: UserID?
    repeat {
      let query = next.map { "?after=\($0.text)" } ?? ""
      let page = try await server.get(AdminUserPage.self, AdminPaths.users + query)
      for user in page.users { try printer.showLine(user) }
      next = page.next
    } while next != nil
  }
}

/// The account that a command is about.
struct AdminAccount: ParsableArguments {
  @Argument(help: "The account's ID, as zdc-server admin users and zdc account show print it.")
  var user: String

  /// - Throws: ``Failure``.
  func path(_ pattern: String) throws -> String {
    guard let id = UserID(text: user) else { throw Failure(.usage, "\(user) is not the ID of an account") }
    return pattern.replacingOccurrences(of: "{userID}", with: id.text)
  }
}

struct AdminShow: AdminCommand {
  static let configuration = CommandConfiguration(commandName: "user", abstract: "Show one account.")

  @OptionGroup var account: AdminAccount
  @OptionGroup var options: AdminOptions

  func run(_ server: AdminClient) async throws {
    let user = try await server.get(AdminUser.self, account.path(AdminPaths.user))
    try AdminPrinter(isJSON: options.json).show(user)
  }
}

struct AdminSuspend: AdminCommand {
  static let configuration = CommandConfiguration(
    commandName: "suspend", abstract: "Refuse logins to an account, and end its sessions.",
    discussion: """
      Nothing is deleted, and the account's devices keep their queued changes. Its shared branches stay open to their other \
      members. zdc-server admin resume ends it.
      """)

  @OptionGroup var account: AdminAccount
  @OptionGroup var options: AdminOptions

  func run(_ server: AdminClient) async throws {
    try await server.send("PUT", account.path(AdminPaths.suspension))
  }
}

struct AdminResume: AdminCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Let the user of a suspended account log in again.")

  @OptionGroup var account: AdminAccount
  @OptionGroup var options: AdminOptions

  func run(_ server: AdminClient) async throws {
    try await server.send("DELETE", account.path(AdminPaths.suspension))
  }
}

struct AdminSetQuota: AdminCommand {
  static let configuration = CommandConfiguration(
    commandName: "quota", abstract: "Set the quota of one account.",
    discussion: """
      The server must run with --quota, which is the quota of all other accounts.

      EXAMPLES
        zdc-server admin quota USER 50000000000 --data /var/lib/zdc
        zdc-server admin quota USER unlimited --data /var/lib/zdc
        zdc-server admin quota USER default --data /var/lib/zdc
      """)

  @OptionGroup var account: AdminAccount
  @Argument(help: "Bytes of sealed content, or unlimited, or default: the server's --quota.")
  var bytes: String
  @OptionGroup var options: AdminOptions

  func run(_ server: AdminClient) async throws {
    let path = try account.path(AdminPaths.quota)
    if bytes == "default" {
      _ = try await server.send("DELETE", path)
      return
    }
    guard let number = bytes == "unlimited" ? 0 : UInt64(bytes), bytes == "unlimited" || number > 0 else {
      throw Failure(.usage, "a quota is a number of bytes, unlimited or default")
    }
    try await server.send("PUT", path, body: AdminQuota(bytes: number))
  }
}

struct AdminSessionsOf: AdminCommand {
  static let configuration = CommandConfiguration(
    commandName: "sessions", abstract: "List the sessions of an account, or end them.")

  @OptionGroup var account: AdminAccount
  @Flag(name: .long, help: "End all sessions. The devices log in again, unless the account is suspended.")
  var end = false
  @OptionGroup var options: AdminOptions

  func run(_ server: AdminClient) async throws {
    let path = try account.path(AdminPaths.sessions)
    if end {
      _ = try await server.send("DELETE", path)
      return
    }
    let printer = AdminPrinter(isJSON: options.json)
    for session in try await server.get(AdminSessions.self, path).sessions { try printer.show(session) }
  }
}

struct AdminInvitesOf: AdminCommand {
  static let configuration = CommandConfiguration(
    commandName: "invites", abstract: "List the codes of the server's --invite-file, and which were used.")

  @OptionGroup var options: AdminOptions

  func run(_ server: AdminClient) async throws {
    let printer = AdminPrinter(isJSON: options.json)
    for invite in try await server.get(AdminInvites.self, AdminPaths.invites).invites { try printer.show(invite) }
  }
}
