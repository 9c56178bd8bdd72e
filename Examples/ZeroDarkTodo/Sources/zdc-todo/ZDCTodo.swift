import ArgumentParser
import Foundation

/// The program `zdc-todo`.
struct ZDCTodo: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc-todo",
    abstract: "To-do lists that only you, and those you share them with, can read.",
    discussion: """
      Commands name a task by its list and its title, or by its number in the last output of `zdc-todo tasks`. Changes are stored \
      on this device and sent when the server can be reached.

      EXAMPLES
        zdc-todo account create --server http://127.0.0.1:7342
        zdc-todo add Groceries milk "oat flakes"
        zdc-todo done Groceries milk
        zdc-todo tasks Groceries
        zdc-todo share Groceries 7jn5… --name Bob
        zdc-todo serve

      With --json, results are JSON on standard output, and an error is an object on standard error: \
      {"error":{"code","exit","message"}}.

      \(ExitStatus.help)
      """,
    subcommands: [
      AccountCommands.self, Lists.self, Tasks.self, Add.self, Edit.self, Done.self, Move.self, Rename.self,
      Delete.self, Photo.self, Share.self, Unshare.self, Members.self, Leave.self, Inbox.self, Accept.self,
      Decline.self,
      Activities.self, Undo.self, Explain.self, Export.self, Import.self, Sync.self, Repair.self, Serve.self,
    ])
}

/// Parses the command line, runs the command, and reports an error as a message and an exit code.
@main
enum Main {
  static func main() async {
    do {
      var command = try ZDCTodo.parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch {
      fail(error)
    }
  }

  private static func fail(_ error: any Error) -> Never {
    // The parser prints help and usage errors itself.
    if ZDCTodo.exitCode(for: error) != .failure || error is ExitCode { ZDCTodo.exit(withError: error) }
    let failure = Failure(error)
    do {
      let isJSON = CommandLine.arguments.contains("--json")
      Output.note(isJSON ? try failure.json() : "zdc-todo: \(failure.message)")
    } catch {
      Output.note("zdc-todo: \(failure.message) (\(error))")
    }
    Foundation.exit(failure.status.rawValue)
  }
}
