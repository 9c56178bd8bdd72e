import ArgumentParser
import Foundation
import TodoKit
import ZeroDarkCloud

struct AccountCommands: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account",
    abstract: "Create an account, log in, choose a name and a handle, list and remove accounts of this device.",
    subcommands: [Create.self, Login.self, Name.self, Handle.self, List.self, Remove.self])

  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create an account and print its 24 words.",
      discussion: """
        Anyone who has the words can read and change everything in the account. Another device needs them to log in. \
        Store them safely.

        EXAMPLES
          zdc-todo account create --server http://127.0.0.1:7342
        """)
    @OptionGroup var options: Options

    func run() async throws {
      let manager = try options.open()
      let (account, words) = try await manager.createAccount()
      let isJSON = options.json
      Output.line(isJSON ? try Output.json(["user": [account.user], "words": words]) : words.joined(separator: " "))
      try await manager.close()
    }
  }

  struct Login: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Log in to an existing account with its 24 words.",
      discussion: """
        EXAMPLES
          zdc-todo account login --words-file words.txt
          zdc-todo account login --words-file - < words.txt
        """)
    @Option(help: ArgumentHelp("Read the words from this file, or - for standard input.", valueName: "file"))
    var wordsFile = "-"
    @OptionGroup var options: Options

    func run() async throws {
      let data =
        wordsFile == "-"
        ? FileHandle.standardInput.readDataToEndOfFile() : try Data(contentsOf: URL(fileURLWithPath: wordsFile))
      let words = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isWhitespace).map(String.init)
      let manager = try options.open()
      let account = try await manager.logIn(words: words)
      _ = try await options.sync(manager, account)
      Output.line(options.json ? try Output.json(["user": account.user]) : "logged in")
      try await manager.close()
    }
  }

  struct Name: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Choose the name that the people see with whom you share.",
      discussion: """
        The server does not see it. An empty name takes it back.

        EXAMPLES
          zdc-todo account name Alice
        """)
    @Argument(help: "The name.") var name: String
    @OptionGroup var options: Options

    func run() async throws {
      try await options.run { account in try await account.people.setOwnName(name) }
    }
  }

  struct Handle: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Choose the handle by which others find you.",
      discussion: """
        It has 3 to 32 letters (a to z), digits and single separators (. _ -), and is public. Without a handle, the \
        command prints yours. An empty one gives it up.

        EXAMPLES
          zdc-todo account handle @alice
          zdc-todo account handle ""
        """)
    @Argument(help: "The handle.") var handle: String?
    @OptionGroup var options: Options

    func run() async throws {
      try await options.run { account in
        if let handle { return try await account.people.chooseHandle(handle) }
        let own = try account.people.person(account.user).handle
        if options.json { return Output.line(try Output.json(["handle": own])) }
        Output.line(own.map { "@\($0)" } ?? "no handle")
      }
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the accounts of this device.", discussion: "EXAMPLES\n  zdc-todo account list --json")
    @OptionGroup var options: Options

    func run() async throws {
      let manager = try options.open()
      let users = try await manager.accounts().map(\.user)
      if options.json { Output.line(try Output.json(users)) }
      if !options.json { for (number, user) in users.enumerated() { Output.line("\(number + 1). \(user)") } }
      try await manager.close()
    }
  }

  struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Remove an account from this device. It stays on the server and on other devices.",
      discussion: "EXAMPLES\n  zdc-todo account remove 2")
    @Argument(help: "The number of the account in `zdc-todo account list`.")
    var number: Int
    @OptionGroup var options: Options

    func run() async throws {
      let manager = try options.open()
      let users = try await manager.accounts().map(\.user)
      guard (1...max(users.count, 1)).contains(number), !users.isEmpty else {
        throw Failure(.noInput, "noAccount", "there is no account \(number)")
      }
      try await manager.removeAccount(users[number - 1])
      try await manager.close()
    }
  }
}
