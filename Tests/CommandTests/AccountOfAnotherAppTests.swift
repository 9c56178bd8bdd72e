import Foundation
import Testing
import ZeroDarkCloud

@testable import ZDCCommands

/// `zdc` and an account that another app created.
@Suite struct AccountOfAnotherAppTests {
  /// - An app with another tree creates an account
  /// - zdc logs in to it
  /// => the error names the option that creates the tree, and does not only warn of the server
  /// - zdc logs in with that option
  /// => the account has files
  @Test func theErrorOfALogin_saysHowTheTreeIsCreated() async throws {
    let world = try await ProgramWorld()
    do {
      let words = world.folder.appendingPathComponent("words").path
      try Data(try await Self.createAccount(world).joined(separator: " ").utf8).write(to: URL(fileURLWithPath: words))
      let login = ["account", "login", "--server", world.url, "--words-file", words]
      let refused = try await world.zdc("a", login)
      #expect(refused.status == ExitStatus.security.rawValue)
      #expect(refused.errors.contains("the account has no tree for files"))
      #expect(refused.errors.contains("--create-tree") && !refused.errors.contains("do not trust"))
      let created = try await world.zdc("a", login + ["--create-tree"])
      #expect(created.status == 0)
      try await world.mustRun("a", "put", words, "home:/")
    } catch {
      await world.end()
      throw error
    }
    await world.end()
  }

  /// - Returns: The account's words.
  private static func createAccount(_ world: ProgramWorld) async throws -> [String] {
    let config = try ZDCConfig(
      primaryTreeID: "com.example.notes", server: world.url,
      databaseDirectory: world.folder.appendingPathComponent("notes"))
    let zdc = try ZeroDarkCloud(delegate: FilesApp(), config: config)
    let session = try zdc.unlockOrCreateDatabase(
      ZDCDatabaseConfig(encryptionKey: try zdc.databaseKeyManager.createKey()))
    let (_, words) = try await session.localUserManager.createAccount()
    try await session.close()
    return words
  }
}
