import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import TodoKit

/// The program as a user runs it: arguments in, text and an exit code out.
@Suite(.timeLimit(.minutes(5))) struct CommandTests {
  struct Result: Sendable {
    var status: Int32
    var output: String
    var errors: String
  }

  struct Terminal: Sendable {
    let folder: String
    let server: String

    @discardableResult
    func run(_ arguments: String..., input: String = "", expecting status: Int32 = 0) async throws -> Result {
      try await run(arguments, input: input, expecting: status)
    }

    @discardableResult
    func run(_ arguments: [String], input: String = "", expecting status: Int32 = 0) async throws -> Result {
      let result = try await CommandTests.run(arguments + ["--folder", folder, "--server", server], input)
      #expect(result.status == status, "\(arguments): \(result.errors)")
      return result
    }
  }

  private static func run(_ arguments: [String], _ input: String) async throws -> Result {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent("zdc-todo")
    process.arguments = arguments
    let (stdin, stdout, stderr) = (Pipe(), Pipe(), Pipe())
    (process.standardInput, process.standardOutput, process.standardError) = (stdin, stdout, stderr)
    let (ended, end) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in end.finish() }
    try process.run()
    stdin.fileHandleForWriting.write(Data(input.utf8))
    try stdin.fileHandleForWriting.close()
    for await _ in ended {}
    let texts = [stdout, stderr].map { String(decoding: $0.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }
    return Result(status: process.terminationStatus, output: texts[0], errors: texts[1])
  }

  /// Two devices of one account, each with its own database.
  private func withTerminals(_ body: (TestServer, Terminal, Terminal) async throws -> Void) async throws {
    let (server, temporary) = (try await TestServer.start(), try TemporaryFolder())
    let (a, b) = (
      Terminal(folder: temporary.url.path + "/a", server: server.url.absoluteString),
      Terminal(folder: temporary.url.path + "/b", server: server.url.absoluteString)
    )
    let words = try await a.run("account", "create").output
    #expect(words.split(separator: " ").count == 24)
    try await b.run("account", "login", input: words)
    try await body(server, a, b)
    try await server.stop()
  }

  @Test func tasksAreAddedOnOneDevice_andChangedOnTheOther() async throws {
    try await withTerminals { _, a, b in
      try await a.run("add", "Groceries", "milk", "bread", "--priority", "high")
      #expect(try await b.run("lists").output == "0/2  Groceries\n")
      try await b.run("done", "groceries", "milk")
      try await b.run("tasks", "groceries")
      try await b.run("edit", "Groceries", "2", "--title", "dark bread", "--priority", "low", "--details", "sliced")
      try await b.run("move", "Groceries", "dark", "--before", "milk")
      #expect(try await a.run("tasks", "Groceries").output == "1. [ ]· dark bread\n2. [x]! milk\n")
      try await a.run("rename", "Groceries", "Market")
      try await a.run("add", "Garden")
      try await a.run("move", "Market", "milk", "--to", "Garden")
      #expect(try await b.run("lists").output == "1/1  Garden\n0/1  Market\n")
      try await b.run("delete", "Garden", "--all")
      try await b.run("delete", "Market", "dark bread")
      let lists = try await a.run("lists", "--json").output
      #expect(lists == #"[{"badges":[],"done":0,"tasks":0,"title":"Market"}]"# + "\n")
    }
  }

  @Test func withoutAServer_changesAreStored_andTheExitCodeSaysSo() async throws {
    try await withTerminals { server, a, b in
      try await server.stop()
      let queued = try await a.run("add", "Groceries", "milk", expecting: 75)
      #expect(queued.errors.contains("wait for the server"))
      try await a.run("add", "Groceries", "bread", "--offline")
      #expect(try await a.run("tasks", "Groceries", "--offline").output.contains("1. [ ]  milk  (pending)"))
      #expect(try await a.run("explain", "Groceries", "milk", "--offline").output.contains("until"))
      try await server.restart()
      try await a.run("sync")
      #expect(try await b.run("tasks", "Groceries").output == "1. [ ]  milk\n2. [ ]  bread\n")
      #expect(try await a.run("explain", "Groceries", "milk").output == "all changes of this task are in the cloud\n")
    }
  }

  @Test func aNumberMeansTheTaskThatWasShown_alsoIfTheSyncChangesTheOrder() async throws {
    try await withTerminals { _, a, b in
      try await a.run("add", "Groceries", "milk", "bread", "jam")
      #expect(try await b.run("tasks", "Groceries").output == "1. [ ]  milk\n2. [ ]  bread\n3. [ ]  jam\n")
      try await a.run("delete", "Groceries", "milk")
      try await b.run("lists")  // the change arrives here, and not with the number
      try await b.run("delete", "Groceries", "2")
      let unknown = try await a.run("delete", "Groceries", "1", expecting: 66)
      #expect(unknown.errors.contains("no task was shown as number 1"))
      #expect(try await a.run("tasks", "Groceries").output == "1. [ ]  jam\n")
      try await a.run("delete", "Groceries", "2", expecting: 66)
      try await a.run("delete", "Groceries", "1")
      #expect(try await b.run("delete", "Groceries", "1", expecting: 66).errors.contains("another device"))
    }
  }

  @Test func anEditIsUndone() async throws {
    try await withTerminals { _, a, b in
      try await a.run("add", "Groceries", "milk")
      try await a.run("done", "Groceries", "milk")
      #expect(try await a.run("activity").output.contains("milk: completed"))
      try await a.run("undo")
      #expect(try await b.run("tasks", "Groceries").output == "1. [ ]  milk\n")
      #expect(try await a.run("activity").output.contains("(undone)"))
      for _ in ["the task", "the list"] { try await a.run("undo") }
      #expect(try await b.run("lists").output == "")
      try await a.run("undo", expecting: 66)
    }
  }

  @Test func tasksAreExported_andImportedAgain() async throws {
    try await withTerminals { _, a, b in
      try await a.run("add", "My groceries", "milk", "--priority", "high", "--details", "two bottles\n1 l")
      try await a.run("add", "Garden", "water the plants")
      try await a.run("done", "Garden", "water")
      let text = try await a.run("export").output
      let exported = Data(try await a.run("export", "--json").output.utf8)
      let lists = try #require(try JSONSerialization.jsonObject(with: exported) as? [[String: Any]])
      #expect(lists.compactMap { $0["title"] as? String } == ["Garden", "My groceries"])
      #expect(lists.map { ($0["tasks"] as? [[String: Any]])?.map { $0["done"] as? Bool } } == [[true], [false]])
      try await a.run("delete", "My groceries", "--all")
      try await a.run("delete", "Garden", "--all")
      let imported = try await b.run("import", "-", "--json", input: text + "\n(B) call mum\n\n").output
      #expect(imported == #"{"imported":3}"# + "\n")
      #expect(try await b.run("lists").output == "1/1  Garden\n0/1  Inbox\n0/1  My groceries\n")
      #expect(try await a.run("export", "My groceries").output == text.split(separator: "\n").last! + "\n")
      #expect(try await a.run("tasks", "My groceries", "--json").output.contains(#"two bottles\n1 l"#))
    }
  }

  @Test func whatCannotBeRead_isReported_andMissingInAnExport() async throws {
    try await withTerminals { _, a, b in
      try await a.run("add", "Groceries", "milk", "flour")
      let large = String(repeating: "x", count: 2 << 20)
      let refused = try await a.run("import", "-", input: "tea +Groceries note:" + large, expecting: 64)
      #expect(refused.output.isEmpty)
      let manager = try ZDCManager(
        server: a.server, folder: URL(fileURLWithPath: a.folder), syncsAutomatically: false)
      let other = Device(manager: manager, account: try #require(try await manager.accounts().first))
      try await other.writeForeign("flour", details: large)
      try await other.sync()
      try await manager.close()
      #expect(try await b.run("sync", expecting: 1).errors.contains("1 lists or tasks cannot be read"))
      for format in [[], ["--json"]] {
        let export = try await b.run(["export"] + format, expecting: 1)
        #expect(export.output.contains("milk") && export.errors.contains("1 tasks are missing"))
      }
      try await a.run("delete", "Groceries", "flour")
      try await b.run("export")
    }
  }

  /// - the server loses a change of another device, which this one has seen
  /// => each command says so, and stores its change; the user accepts the server's state, and all changes are there
  @Test func aServerThatFailsVerification_isNotCalledUpToDate() async throws {
    try await withTerminals { server, a, b in
      try await a.run("add", "Groceries", "milk")
      let backup = try await server.backup()
      try await a.run("add", "Groceries", "bread")
      try await b.run("sync")
      try await server.restore(backup)
      #expect(try await b.run("sync", expecting: 76).errors.contains("zdc-todo repair"))
      try await b.run("add", "Groceries", "jam", expecting: 76)
      #expect(try await b.run("repair", expecting: 76).errors.contains("neither sent nor received"))
      try await b.run("repair", "--accept-server")
      let tasks = try await b.run("tasks", "Groceries").output
      #expect(tasks == "1. [ ]  milk\n2. [ ]  bread\n3. [ ]  jam\n")
      try await b.run("repair")
    }
  }

  @Test func aPhotoTravels_andComesBackEqual() async throws {
    try await withTerminals { _, a, b in
      let folder = try TemporaryFolder()
      let (file, copy) = (folder.url.appendingPathComponent("photo.jpg"), folder.url.appendingPathComponent("copy.jpg"))
      try Pictures.jpeg.write(to: file)
      try await a.run("add", "Groceries", "milk")
      try await a.run("photo", "Groceries", "milk", "--attach", file.path)
      #expect(try await b.run("tasks", "Groceries").output == "1. [ ]  milk  (photo)\n")
      try await b.run("photo", "Groceries", "milk", "--get", copy.path)
      #expect(try Data(contentsOf: copy) == Pictures.jpeg)
      try await b.run("photo", "Groceries", "milk", "--get", copy.path, expecting: 73)
      try await b.run("photo", "Groceries", "milk", "--remove")
      try await a.run("photo", "Groceries", "milk", "--get", folder.url.path + "/none.jpg", expecting: 66)
      try Data("#!/bin/sh".utf8).write(to: file)
      let refused = try await a.run("photo", "Groceries", "milk", "--attach", file.path, "--json", expecting: 65)
      #expect(refused.errors.contains(#""code":"notAPicture""#))
    }
  }

  private static let mistakes: [([String], Int32)] = [
    (["tasks", "Nothing"], 66), (["add"], 64), (["move", "Groceries", "milk"], 64), (["delete", "Groceries"], 64),
    (["tasks", "Groceries", "--account", "3"], 64), (["edit", "Groceries", "m", "--title", "x"], 64),
    (["done", "Groceries", "milk", "tea"], 66), (["account", "login", "--words-file", "/nonexistent"], 66),
  ]

  @Test(arguments: mistakes)
  func mistakesHaveTheirExitCodes_andChangeNothing(_ arguments: [String], _ status: Int32) async throws {
    try await withTerminals { _, a, _ in
      try await a.run("add", "Groceries", "milk", "mint")
      let result = try await Self.run(arguments + ["--folder", a.folder, "--offline"], "")
      #expect(result.status == status, "\(result.errors)")
      #expect(!result.errors.isEmpty)
      #expect(try await a.run("tasks", "Groceries").output == "1. [ ]  milk\n2. [ ]  mint\n")
    }
  }

  @Test func wordsOfNoAccount_andAMissingAccount_areNamed() async throws {
    let (server, temporary) = (try await TestServer.start(), try TemporaryFolder())
    let a = Terminal(folder: temporary.url.path + "/a", server: server.url.absoluteString)
    try await a.run("account", "login", input: "not the words", expecting: 65)
    try await a.run("lists", expecting: 78)
    try await server.stop()
  }

  @Test func everyCommandHasHelpWithExamples() async throws {
    let help = try await Self.run(["--help"], "").output
    let commands = help.split(separator: "SUBCOMMANDS:").last!.split(separator: "\n")
      .compactMap { $0.hasPrefix("  ") && !$0.hasPrefix("   ") ? $0.split(separator: " ").first.map(String.init) : nil }
    #expect(commands.count > 14)
    for command in commands where command != "See" && command != "account" {
      let text = try await Self.run([command, "--help"], "").output
      #expect(text.contains("EXAMPLES\n  zdc-todo \(command)"), "\(command)")
    }
  }
}
