import ArgumentParser
import ZDCCommands

struct Account: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Create accounts, log in, list profiles, show or change an account's words and keys, close it.",
    subcommands: [
      Create.self, Login.self, ListProfiles.self, ShowWords.self, RotateWords.self, RotateKeys.self, Close.self,
    ])
}

/// Options for storing a new profile's database key.
struct NewKeyOptions: ParsableArguments {
  @Flag(help: "Protect the database key with a passphrase: from a prompt, or from --passphrase-file.")
  var passphrase = false

  func newPassphrase(_ common: CommonOptions) throws -> String? {
    if let file = common.passphraseFile { return try Terminal.readSecretFile(file) }
    guard passphrase else { return nil }
    let first = try Terminal.readSecret("New passphrase: ")
    guard try Terminal.readSecret("Repeat the passphrase: ") == first else {
      throw CommandError(
        .data, "passphrasesDiffer", "the two passphrases differ", hint: "nothing was created; try again")
    }
    return first
  }
}

extension Account {
  struct Create: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Create an account and show its 24 words.",
      usage: "zdc account create [options]",
      discussion: """
        The words are the account: anyone who has them can read everything, and lost words cannot be recovered. They are printed once on \
        standard output, or written to a new file. If interrupted, run the same command again: it resumes with the same account.

        EXAMPLES
          zdc account create --server https://sync.example.org
          zdc account create --server http://127.0.0.1:7342 --words-file words.txt
          zdc account create --server https://sync.example.org --passphrase

        JSON: {"profile","server","userID","words"?}
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var key: NewKeyOptions

    @Option(
      help: ArgumentHelp("Write the words to this new file (mode 0600) instead of standard output.", valueName: "file"))
    var wordsFile: String?

    @Option(help: ArgumentHelp("Read an invitation code from this file, or - for standard input.", valueName: "file"))
    var inviteFile: String?

    func run() async throws {
      if let wordsFile { try WordsFile.check(wordsFile) }
      let invite = try inviteFile.map(Terminal.readSecretFile)
      var report = try await Accounts.create(common.options, invite: invite) { try key.newPassphrase(common) }
      let output = common.output
      let words = report.words ?? []
      if let wordsFile {
        try WordsFile.write(words, to: wordsFile)
        report.words = nil
        output.note("the words are in \(wordsFile): store them safely, away from this machine")
      } else {
        output.note("These 24 words are the account. Write them down; they cannot be replaced:")
      }
      try output.object(report)
      if wordsFile == nil { output.words(words) }
      output.note("profile \(report.profile): account \(report.userID) on \(report.server)")
    }
  }

  struct Login: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Log in to an account with its 24 words.",
      usage: "zdc account login [options]",
      discussion: """
        Prompts for the words without echo, or reads them from standard input or a file. An account that another app created has no \
        tree for files yet: --create-tree adds one. If interrupted, run the same command again.

        With --link no words are needed: shows a code for zdc devices link on a device of the account, then six digits to compare. The code \
        works for ten minutes.

        In a profile that has an account already, logs in to it again. Do that with the new words after another device has changed them.

        EXAMPLES
          zdc account login --server https://sync.example.org
          zdc account login --server https://sync.example.org --create-tree
          zdc account login --server https://sync.example.org --link
          zdc account login --server https://sync.example.org --words-file words.txt
          zdc account show-words | zdc --profile second account login --words-file -

        JSON: {"profile","server","userID"}, with --link after {"code"} and {"digits"}
        """)

    @OptionGroup var common: CommonOptions
    @OptionGroup var key: NewKeyOptions

    @Option(help: ArgumentHelp("Read the words from this file, or - for standard input.", valueName: "file"))
    var wordsFile: String?

    @Flag(help: "Create the tree for files if another app created the account.")
    var createTree = false

    @Flag(help: "Show a code for another device of the account, instead of asking for the words.")
    var link = false

    @Flag(help: "With --link: do not ask whether the digits are the same.")
    var yes = false

    func validate() throws {
      guard !link || wordsFile == nil else { throw ValidationError("give either --link or --words-file") }
      guard link || !yes else { throw ValidationError("--yes goes with --link") }
    }

    func run() async throws {
      let report = try await login()
      try common.output.object(report)
      common.output.note("profile \(report.profile): account \(report.userID) on \(report.server)")
      common.output.note("next: zdc sync")
    }

    private func login() async throws -> Accounts.Report {
      guard link else {
        return try await Accounts.login(common.options, words: words(), createsTree: createTree) {
          try key.newPassphrase(common)
        }
      }
      return try await Accounts.link(common.options, createsTree: createTree, isConfirmed: yes) {
        try key.newPassphrase(common)
      }
    }

    private func words() throws -> String {
      if let wordsFile { return try Terminal.readSecretFile(wordsFile) }
      guard !Terminal.isInputTerminal else { return try Terminal.readSecret("The 24 words: ") }
      return try Terminal.readSecretFile("-")
    }
  }

  struct ListProfiles: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the profiles on this machine.",
      usage: "zdc account list [options]",
      discussion: """
        EXAMPLE
          zdc account list --json

        JSON, one a line: {"profile","server","userID"?}
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
      for listed in try Accounts.list(environment: common.options.environment) {
        try common.output.object(listed)
        common.output.line("\(listed.profile)  \(listed.userID ?? "(not finished)")  \(listed.server)")
      }
    }
  }

  struct ShowWords: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show the 24 words of the profile's account.",
      usage: "zdc account show-words [options]",
      discussion: """
        Numbers the words on a terminal; writes one line to a file or pipe, as --words-file reads it.

        EXAMPLE
          zdc account show-words > words.txt

        JSON: {"words":[…]}
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws {
      let words = try await Accounts.words(common.options)
      try common.output.object(["words": words])
      common.output.words(words)
    }
  }
}
