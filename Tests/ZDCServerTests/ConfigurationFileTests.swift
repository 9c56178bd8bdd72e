import Foundation
import Testing

/// `zdc-server serve --config` and `zdc-server config check`.
@Suite(.needsFolder) struct ConfigurationFileTests {
  private func withFile(_ text: String, _ body: (_ folder: String, _ file: String) async throws -> Void) async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let file = folder + "/server.json"
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    try await body(folder, file)
  }

  @Test func theFilesOptionsAreUsed_andThoseOfTheCommandLineWin() async throws {
    // A file that asks for too much, and a folder that the command line replaces.
    let text = """
      {
        // Registration is closed.
        "registration": "closed",
        "origin": ["https://sync.example.org"],
        "data": "/nowhere/at/all",
        "max-account-calls": 30,
      }
      """
    try await withFile(text) { folder, file in
      let server = try await ServerProcess.serve(folder: folder + "/data", ["--config", file])
      await #expect(throws: (any Error).self) { try await server.newAccount() }
      #expect(await server.stop() == 0)
      let open = try await ServerProcess.serve(
        folder: folder + "/data", ["--config=\(file)", "--registration", "open", "--origin", "http://127.0.0.1"])
      #expect(await open.stop() == 0)
    }
  }

  @Test func aGoodFileIsPrintedAsArguments_withoutItsPassword() async throws {
    let text =
      #"{"listen": "0.0.0.0:443", "origin": ["https://a.example", "https://b.example"], "max-streams": 8, "data": "d", "database": "postgres://zdc:secret@db/zdc"}"#
    try await withFile(text) { _, file in
      let (status, output) = try await ServerProcess.run(["config", "check", file])
      #expect(status == 0)
      #expect(!output.contains("secret"))
      #expect(output.contains("--origin=https://a.example\n--origin=https://b.example\n"))
      #expect(output.contains("--max-streams=8\n"))
    }
  }

  private static let bad: [(String, Int32)] = [
    (#"{"data": "d", "maxStreams": 8}"#, 64), (#"{"data": "d", "max-streams": true}"#, 64),
    (#"{"data": "d", "max-streams": 0}"#, 64), (#"{"data": "d", "max-streams": "many"}"#, 64),
    (#"{"data": "d", "config": "other.json"}"#, 64), ("listen = 1", 64), ("[]", 64), ("{}", 64),
    (#"{"data": "d", "tls-cert": "/nowhere.pem", "tls-key": "/nowhere.pem"}"#, 66),
  ]

  @Test(arguments: bad) func aBadFileIsRefused(text: String, status: Int32) async throws {
    try await withFile(text) { _, file in
      let (checked, _) = try await ServerProcess.run(["config", "check", file])
      #expect(checked == status, "\(text)")
      let (served, _) = try await ServerProcess.run(["serve", "--config", file, "--listen", "127.0.0.1:0"])
      #expect(served == status, "\(text)")
    }
  }

  /// One file is enough for all commands of an operator.
  @Test func theOtherCommandsReadWhereTheStoresAre() async throws {
    try await withFile("{}") { folder, file in
      let (old, new) = (try write("old", in: folder), try write("new", in: folder))
      let server = try await ServerProcess.serve(folder: folder + "/old", ["--config", old])
      _ = try await server.newAccount()
      let (listed, users) = try await ServerProcess.run(["admin", "users", "--config", old, "--json"])
      #expect(listed == 0)
      #expect(users.contains("\"userID\""), "\(users)")
      // What is given here wins: the socket of the file is another one.
      let elsewhere = ["admin", "users", "--config", old, "--data", folder + "/new"]
      #expect(try await ServerProcess.run(elsewhere).0 != 0)
      #expect(await server.stop() == 0)
      let backup = folder + "/backup"
      for arguments in [
        ["check", "--config=\(old)"], ["backup", backup, "--config", old],
        ["migrate", "--from-config", old, "--to-config", new], ["check", "--config", new],
        ["restore", backup, "--to-config", new, "--to-data", folder + "/third"],
        ["check", "--data", folder + "/third"],
      ] {
        let (status, output) = try await ServerProcess.run(arguments)
        #expect(status == 0, "\(arguments): \(output)")
      }
    }
  }

  /// Writes a configuration with options that only `serve` has.
  private func write(_ name: String, in folder: String) throws -> String {
    let file = "\(folder)/\(name).json"
    let text = """
      {"data": "\(folder)/\(name)", "admin-socket": "\(folder)/\(name).sock", "registration": "open", "max-streams": 4}
      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    return file
  }

  @Test func aMissingFileIsNamed() async throws {
    for arguments in [
      ["serve", "--config"], ["config", "check"], ["check", "--config"], ["admin", "users", "--config"],
      ["migrate", "--from-config"],
    ] {
      let (status, _) = try await ServerProcess.run(arguments + ["/nowhere.json"])
      #expect(status == 66)
    }
  }
}
