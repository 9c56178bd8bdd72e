import ArgumentParser
import ZDCCommands

// Changes of an account that the server and all devices see.

extension Account {
  struct RotateKeys: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Replace the account's sign and decrypt keys.",
      usage: "zdc account rotate-keys [options]",
      discussion: """
        The words stay the same and everything stays readable. Other devices take over the new keys when they connect. With --compromised, \
        other users distrust the old keys, all other devices are logged out, and the next zdc sync retires the old keys in each tree. Other \
        devices still have the words: see zdc account rotate-words. If interrupted, run the same command again.

        EXAMPLES
          zdc account rotate-keys
          zdc account rotate-keys --compromised

        JSON: {"generation","queuedRetirements","revokedDevices"}
        """)

    @OptionGroup var common: CommonOptions
    @Flag(help: "Others may have the old keys.")
    var compromised = false

    func run() async throws {
      try await AccountChanges.rotateKeys(common.options, areCompromised: compromised)
    }
  }

  struct RotateWords: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Give the account new words; the old ones stop working.",
      usage: "zdc account rotate-words [options]",
      discussion: """
        Logs out all other devices. They keep their files and queued changes: run zdc account login there, with the new words. Prints the new \
        words once on standard output, or writes them to a new file. If interrupted, run the same command again; zdc account show-words \
        shows the words that are in force.

        EXAMPLES
          zdc account rotate-words
          zdc account rotate-words --words-file new-words.txt

        JSON: {"words":[…]?}
        """)

    @OptionGroup var common: CommonOptions
    @Option(
      help: ArgumentHelp("Write the words to this new file (mode 0600) instead of standard output.", valueName: "file"))
    var wordsFile: String?

    func run() async throws {
      if let wordsFile { try WordsFile.check(wordsFile) }
      let words = try await AccountChanges.rotateWords(common.options)
      let output = common.output
      if let wordsFile {
        try WordsFile.write(words, to: wordsFile)
        output.note("the words are in \(wordsFile): store them safely, away from this machine")
      } else {
        output.note("These 24 words are the account from now on; the old ones no longer work:")
      }
      try output.object(wordsFile == nil ? ["words": words] : [:])
      if wordsFile == nil { output.words(words) }
    }
  }

  struct Close: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Close the account for good.",
      usage: "zdc account close [options]",
      discussion: """
        Nothing can be written any more, on any device; queued changes are never sent. The account can be read for 30 days; then the server \
        removes everything except the public history of its keys. Asks for confirmation, or takes --yes.

        EXAMPLES
          zdc account close
          zdc account close --yes

        JSON: {"userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    func run() async throws {
      try await AccountChanges.close(common.options, isConfirmed: yes)
    }
  }
}
