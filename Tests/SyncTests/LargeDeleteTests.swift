import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A commit deletes a limited number of nodes; a user's delete may be larger.
struct LargeDeleteTests {
  /// - /top has two folders of 5,100 nodes each, more than one commit may delete
  /// => the delete goes in two commits, children before the top, and nothing stays queued or listed
  @Test("S7: a folder with more nodes than one commit may delete is deleted in several")
  func deleteInSeveralCommits() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for path in ["/top", "/top/left", "/top/right", "/kept"] { try await a.create(path) }
      for folder in ["/top/left", "/top/right"] { try await a.create(5_100, in: folder) }
      try await a.sync()
      #expect(UInt64(10_202) > Limits.deletedDescendants)
      let before = try world.server.commitCount()
      try await a.delete("/top")
      try await a.sync()
      #expect(try world.server.commitCount() == before + 2)
      #expect(try await a.tree(versions: false).contains("top") == false)
      let b = try await world.device("B")
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == a.tree(versions: false))
      #expect(try await b.tree(versions: false).contains("kept"))
    }
  }
}
