import ArgumentParser

/// The program `zdc-server`.
@main
struct Command: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc-server",
    abstract: "Keeps sealed trees: it orders, stores and hands out what it cannot read.",
    discussion: ExitStatus.help,
    subcommands: [Serve.self, Check.self, Version.self])

  static func main() async {
    CoreDumps.disable()
    await main(nil)
  }
}
