import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TutorialStep11

/// The tutorial's finished app, on two devices.
@Suite(.timeLimit(.minutes(20))) struct TutorialTests {
  private typealias Note = TutorialStep11.Note

  /// Follows the app's notes until they have these titles and lines.
  private static func wait(for titles: [String], lines: [[String]], in app: NotesApp) async throws {
    for try await notes in app.notes() {
      let sorted = notes.sorted { $0.title < $1.title }
      if sorted.map(\.title) == titles, sorted.map({ Set($0.lines.rawArray) }) == lines.map(Set.init) { return }
    }
  }

  @Test func notesOfTwoDevicesAreTheSame_andEditsOfBothAreMerged() async throws {
    let (server, folder) = (try await TestServer.start(), try TemporaryFolder())
    let laptop = try NotesApp(serverURL: server.url, folder: try folder.folder("laptop"))
    let phone = try NotesApp(serverURL: server.url, folder: try folder.folder("phone"))
    try await phone.logIn(try await laptop.signUp())
    try await withThrowingTaskGroup(of: Void.self) { group in
      for app in [laptop, phone] { group.addTask { try await app.receive() } }

      let note = Note(title: "Groceries", lines: ["milk"])
      try await laptop.add(note)
      try await Self.wait(for: ["Groceries"], lines: [["milk"]], in: phone)

      async let bread: Void = laptop.edit(note.id) { $0.lines.append("bread") }
      async let tea: Void = phone.edit(note.id) { $0.lines.append("tea") }
      _ = try await (bread, tea)
      for app in [laptop, phone] {
        try await Self.wait(for: ["Groceries"], lines: [["milk", "bread", "tea"]], in: app)
      }
      group.cancelAll()
      do { try await group.waitForAll() } catch is CancellationError {}
    }
    try await laptop.zdc.close()
    try await phone.zdc.close()
    try await server.stop()
  }

  /// A note that arrives as a file, and a node that is not a note.
  @Test func largeNotesArrive_andWhatIsNoNoteKeepsNoneOut() async throws {
    let (server, folder) = (try await TestServer.start(), try TemporaryFolder())
    let laptop = try NotesApp(serverURL: server.url, folder: try folder.folder("laptop"))
    let phone = try NotesApp(serverURL: server.url, folder: try folder.folder("phone"))
    let words = try await laptop.signUp()
    try await phone.logIn(words)
    try await Self.createNoNote(server, folder, words)
    let line = String(repeating: "oat milk ", count: 20_000)
    let receiving = _Concurrency.Task { try await phone.receive() }
    try await laptop.add(Note(title: "Large", lines: [line]))
    try await Self.wait(for: ["Large"], lines: [[line]], in: phone)
    try await laptop.add(Note(title: "Small"))
    try await Self.wait(for: ["Large", "Small"], lines: [[line], []], in: phone)
    receiving.cancel()
    _ = await receiving.result
    try await laptop.zdc.close()
    try await phone.zdc.close()
    try await server.stop()
  }

  /// Creates a node with empty content, as another app on the same tree.
  private static func createNoNote(_ server: TestServer, _ folder: TemporaryFolder, _ words: [String]) async throws {
    var config = ZDCConfig(
      primaryTreeID: "com.example.notes", serverURL: server.url, databaseDirectory: try folder.folder("other"))
    config.syncAutomatically = false
    let zdc = try ZeroDarkCloud(delegate: ArchiveDelegate(), config: config)
    try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: Data(repeating: 7, count: 32)))
    let users = try #require(zdc.localUserManager)
    let user = try await users.login(words: words).uuid
    _ = try await zdc.syncManager?.syncUntilIdle(localUserID: user)
    try await zdc.databaseManager?.rwDatabaseConnection.write { transaction in
      let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: user))
      _ = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["no note"]))
    }
    _ = try await zdc.syncManager?.syncUntilIdle(localUserID: user)
    try await zdc.close()
  }

  /// Delegate and framework do not retain each other.
  @Test func anAppThatIsLetGo_goes() async throws {
    let folder = try TemporaryFolder()
    weak var framework: ZeroDarkCloud?
    do {
      let app = try NotesApp(serverURL: URL(string: "http://127.0.0.1:1")!, folder: try folder.folder("laptop"))
      framework = app.zdc
      try await app.zdc.close()
    }
    while framework != nil { await _Concurrency.Task.yield() }
  }

  @Test func noPropertyIsForgotten() {
    #expect(Note.unlistedFields(of: Note(title: "any")) == [])
  }
}
