import ArgumentParser

/// The program `zdc-server`.
@main
struct Command: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc-server",
    abstract: "Stores, orders and serves encrypted trees that it cannot read.",
    discussion: ExitStatus.help,
    subcommands: [Serve.self, Check.self, Version.self])

  static func main() async {
    CoreDumps.disable()
    await main(nil)
  }
}
