import Foundation
import GRDB
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// What a device sees when the server's operator suspends its account, and later resumes it.
@Suite(.timeLimit(.minutes(20))) struct SuspendedAccountTests {
  private static func setSuspended(_ isSuspended: Bool, _ world: TestWorld) async throws {
    let queue = try DatabaseQueue(path: world.server.folder.appendingPathComponent("zdc.sqlite").path)
    try await queue.write { db in
      try db.execute(sql: "UPDATE users SET suspended_ms = ?", arguments: [isSuspended ? 1 : nil])
      if isSuspended { try db.execute(sql: "DELETE FROM sessions") }
    }
    try queue.close()
    try await world.server.restart()
  }

  /// - the account is suspended while a change is queued
  /// => push and pull fail with `accountSuspended`, the change stays queued, and goes out when the account is resumed
  @Test func queuedChangesGoOutAfterwards() async throws {
    try await TestWorld.run { world in
      let device = try await world.device("A")
      let path = ZDCTreesystemPath(pathComponents: ["kept"])
      try await Self.setSuspended(true, world)
      try await device.write { _, cloud in try cloud.createNode(withPath: path) }
      let push = await #expect(throws: ZDCServerError.self) { try await device.push() }
      let pull = await #expect(throws: ZDCServerError.self) { try await device.pull() }
      #expect((push?.code, pull?.code) == (.accountSuspended, .accountSuspended))
      let queued = try await device.node("/kept")
      #expect(!queued.isUploaded)
      try await Self.setSuspended(false, world)
      try await device.sync()
      let sent = try await device.node("/kept")
      #expect(sent.isUploaded)
    }
  }
}
