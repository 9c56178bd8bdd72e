import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A commit deletes a limited number of nodes; a user's delete may be larger.
struct LargeDeleteTests {
  /// - /top has two folders of 5,100 nodes each, more than one commit may delete
  /// => the delete takes two commits, children before the top, and nothing stays queued or listed
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

  /// - a folder is replaced by another one of its name, and all its nodes are moved there: more than one commit may
  /// move
  /// => the new folder is created first, under another name, because the old one cannot be deleted yet; in the end it
  /// has its real name
  @Test("M20: a folder that is replaced by one of the same name, with more nodes moved than one commit may hold")
  func moveIntoTheReplacement() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let count = Limits.commitOperations + 100
      for path in ["/list", "/aside"] { try await a.create(path) }
      try await a.create(count, in: "/list")
      try await a.sync()
      let nodes = try await a.tree(versions: false).split(separator: "\n").filter { $0.hasPrefix("/list/") }
      let names = nodes.map { $0.dropFirst(6).prefix { $0 != " " } }
      #expect(names.count == count)
      for name in names { try await a.move("/list/\(name)", to: "/aside/\(name)") }
      try await a.delete("/list")
      try await a.create("/list")
      for name in names { try await a.move("/aside/\(name)", to: "/list/\(name)") }
      try await a.sync()
      let wanted = (["/aside", "/list"] + names.map { "/list/\($0)" }).sorted()
      let b = try await world.device("B")
      try await world.settle(a, b)
      for device in [a, b] {
        #expect(try await device.tree(versions: false).split(separator: "\n").map(String.init).sorted() == wanted)
      }
    }
  }
}
