import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TutorialStep11

/// The tutorial's app as its reader has it at the end, on two devices.
@Suite(.timeLimit(.minutes(20))) struct TutorialTests {
  private typealias Note = TutorialStep11.Note

  /// Follows the app's notes until they are as they should be.
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

  @Test func noPropertyIsForgotten() {
    #expect(Note.unlistedFields(of: Note(title: "any")) == [])
  }
}
