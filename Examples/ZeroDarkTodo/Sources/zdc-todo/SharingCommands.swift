import ArgumentParser
import Foundation
import TodoKit
import ZeroDarkCloud

struct Share: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Share a list with another user, and invite them.",
    discussion: """
      The user is named by ID, which they find with `zdc-todo account list`, by the handle that they have chosen with \
      `zdc-todo account handle`, or by a name that you have given them. \
      Compare the printed safety number with theirs, on the phone or in person: it proves that no attacker is between \
      you. For a member, the command changes what they may do. Without a change, it invites them again.

      EXAMPLES
        zdc-todo share Groceries 7jn5… --name Bob
        zdc-todo share Groceries @bob
        zdc-todo share Garden Bob --read-only
      """)
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The other user: ID, @handle or name.") var user: String
  @Option(help: "A name for the user. Only this device knows it.") var name: String?
  @Flag(help: "Let them read the list, and not change it.") var readOnly = false
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let list = try await account.list(list)
      guard list.isOwn else {
        throw Failure(.noPermission, "notAllowed", "\(list.title.displayed) belongs to another user, who can share it")
      }
      let person = try await account.people.find(account.userID(user))
      if let name { try await account.people.setName(name, of: person.id) }
      try await account.share(list.id, with: person.id, canEdit: !readOnly)
      if options.json { return Output.line(try Output.json(PersonJSON(account.people.person(person.id)))) }
      Output.line("safety number with \(try account.people.person(person.id).label.displayed):")
      for line in PersonJSON.lines(person.safetyNumber) { Output.line("  \(line)") }
    }
  }
}

struct Unshare: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "End another user's access to a list.",
    discussion: """
      The list gets a new key. Their devices may have copied everything that they could read before.

      EXAMPLES
        zdc-todo unshare Groceries Bob
      """)
  @Argument(help: "The title of the list.") var list: String
  @Argument(help: "The other user: ID or name.") var user: String
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let list = try await account.list(list)
      let userID = try await account.userID(user)
      guard list.members.contains(where: { $0.id == userID }) else {
        throw Failure(.noInput, "noMember", "\(list.title.displayed) is not shared with \(user.displayed)")
      }
      try await account.remove(userID, from: list.id)
    }
  }
}

struct Members: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show who has access to a list.",
    discussion: "EXAMPLES\n  zdc-todo members Groceries\n  zdc-todo members Groceries --json")
  @Argument(help: "The title of the list.") var list: String
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let members = try await account.list(list).members.map(MemberJSON.init)
      if options.json { return Output.line(try Output.json(members)) }
      for member in members { Output.line(member.line) }
    }
  }
}

struct Leave: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Leave a list of another user, on all of your devices.",
    discussion: "EXAMPLES\n  zdc-todo leave Groceries")
  @Argument(help: "The title of the list.") var list: String
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let list = try await account.list(list)
      guard !list.isOwn else {
        throw Failure(
          .usage, "ownList",
          "\(list.title.displayed) is your list; use `zdc-todo unshare` to remove others, or `zdc-todo delete --all`")
      }
      try await account.leave(list.id)
    }
  }
}

struct Inbox: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show invitations, and users who are unknown to you and have sent messages.",
    discussion: """
      `zdc-todo accept` and `zdc-todo decline` answer both.

      EXAMPLES
        zdc-todo inbox
        zdc-todo inbox --json
      """)
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      let inbox = InboxJSON(try await account.screen().invitations, try await senders(account))
      if options.json { return Output.line(try Output.json(inbox)) }
      for line in inbox.lines { Output.line(line) }
    }
  }

  private func senders(_ account: Account) async throws -> [UnknownSender] {
    if options.offline { return [] }
    // `run` reports the error.
    do { return try await account.people.unknownSenders() } catch is ZDCTransportError { return [] }
  }
}

struct Accept: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Accept an invitation, or the messages of an unknown user.",
    discussion: """
      An accepted list appears on all of your devices. Its title is yours to change.

      EXAMPLES
        zdc-todo accept Groceries
        zdc-todo accept 7jn5…
      """)
  @Argument(help: "The list's title, or the user's ID.") var name: String
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      switch try await account.inboxEntry(name) {
      case .invitation(let invitation): try await account.accept(invitation.id)
      case .sender(let sender):
        try await account.people.accept(sender.id)
        Output.note("zdc-todo: `zdc-todo inbox` shows the user's invitations")
      }
    }
  }
}

struct Decline: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Decline an invitation, or delete the messages of an unknown user.",
    discussion: """
      The other user is not notified.

      EXAMPLES
        zdc-todo decline Groceries
        zdc-todo decline 7jn5… --block
      """)
  @Argument(help: "The list's title, or the user's ID.") var name: String
  @Flag(help: "Refuse all later messages of the user.") var block = false
  @OptionGroup var options: Options

  func run() async throws {
    try await options.run { account in
      switch try await account.inboxEntry(name) {
      case .invitation(let invitation):
        try await account.decline(invitation.id)
        if block { try await account.people.decline(invitation.sender.id, isBlocking: true) }
      case .sender(let sender): try await account.people.decline(sender.id, isBlocking: block)
      }
    }
  }
}

/// An invitation or an unknown sender, as a command line names it.
private enum InboxEntry {
  case invitation(InvitationItem)
  case sender(UnknownSender)
}

extension Account {
  /// Finds a user by ID, or by the name that the user has given them.
  fileprivate func userID(_ text: String) async throws -> String {
    let named = try await people.named().filter { $0.name == text }
    guard named.count < 2 else {
      throw Failure(.usage, "ambiguous", "\(named.count) users have the name \(text.displayed); use the ID of one")
    }
    return named.first?.id ?? text
  }

  /// Finds an invitation by title or ID, or an unknown sender by ID.
  fileprivate func inboxEntry(_ name: String) async throws -> InboxEntry {
    let invitations = try await screen().invitations.filter { $0.title == name || $0.id == name }
    // An attacker can make an ID that begins like another one, so the whole ID must match.
    let senders = invitations.isEmpty ? try await people.unknownSenders().filter { $0.id == name } : []
    let entries = invitations.map(InboxEntry.invitation) + senders.map(InboxEntry.sender)
    guard let entry = entries.first else {
      throw Failure(.noInput, "notInInbox", "the inbox has nothing that is named \(name.displayed)")
    }
    guard entries.count == 1 else {
      throw Failure(
        .usage, "ambiguous", "\(entries.count) entries match \(name.displayed); use an id of `inbox --json`")
    }
    return entry
  }
}
