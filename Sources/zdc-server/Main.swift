import ArgumentParser

/// The program `zdc-server`.
@main
struct Command: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc-server",
    abstract: "Store, order and serve encrypted trees without being able to read them.",
    discussion: ExitStatus.help,
    subcommands: [Serve.self, Check.self, Version.self])

  static func main() async {
    CoreDumps.disable()
    await main(nil)
  }
}
