import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A loop over a stream ends when the database is closed, so an app's task does not outlive the session.
@Suite(.timeLimit(.minutes(5))) struct ClosingTests {
  @Test func streamsOfChangesEndWithTheSession() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("closing-\(UUID().uuidString)")
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: folder) } }
    let server = try #require(URL(string: "http://127.0.0.1:1"))
    var config = ZDCConfig(primaryTreeID: "com.example.sheets", serverURL: server, databaseDirectory: folder)
    config.syncAutomatically = false
    let zdc = try ZeroDarkCloud(delegate: NoOpDelegate(), config: config)
    let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: Data(repeating: 7, count: 32)))
    let files = session.diskManager.changes
    let reader = Task { for await _ in files {} }
    try await session.close()
    await reader.value
    // A stream that is asked for too late ends immediately.
    for await _ in session.diskManager.changes {}
  }
}
