import ArgumentParser
import Foundation

/// The program `zdc-server`.
@main
struct Command: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc-server",
    abstract: "Store, order and serve encrypted trees without being able to read them.",
    discussion: ExitStatus.help,
    subcommands: [
      Serve.self, Config.self, Check.self, Migrate.self, BackUp.self, Verify.self, Restore.self, Admin.self,
      Version.self,
    ])

  static func main() async {
    CoreDumps.disable()
    // A file that reaches its size limit must be an error, and not kill the program.
    signal(SIGXFSZ, SIG_IGN)
    do {
      let arguments = Array(CommandLine.arguments.dropFirst())
      await main(try ConfigurationFile.merged(arguments, environment: ProcessInfo.processInfo.environment))
    } catch let failure as Failure {
      failure.report()
      exit(withError: failure.status.code)
    } catch { exit(withError: error) }
  }
}
