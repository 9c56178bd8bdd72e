import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Nodes that are deleted in the cloud while changes are queued here. The app is asked first; the nodes that
/// it keeps are created again, parents first.
struct DirtyDeleteTests {
  /// Makes B edit d in /a/b/c/d, and A delete /a.
  private static func scene(
    _ world: TestWorld, _ answer: @escaping @Sendable (ZDCNode, ZDCCloudTransaction) throws -> Void = { _, _ in }
  ) async throws -> (TestDevice, TestDevice) {
    let a = try await world.device("A")
    let b = try await world.device("B")
    for path in ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b/clean", "/a/b/clean/er"] {
      try await a.create(path, String(path.suffix(1)))
    }
    try await world.settle(a, b)
    b.recorder.on(.deletedDirty) { node, transaction in
      let transaction = try #require(transaction as? ZDCReadWriteTransaction)
      let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
      try answer(node, cloud)
    }
    try await b.edit("/a/b/c/d", "mine")
    try await a.delete("/a")
    try await a.sync()
    _ = b.recorder.take()
    return (a, b)
  }

  private static func node(_ text: String, _ cloud: ZDCCloudReadTransaction) throws -> ZDCNode {
    let path = try #require(ZDCTreesystemPath(text))
    return try #require(cloud.node(path: path))
  }

  @Test("seed 003: the callback comes first, with everything there; then the clean branches go, each announced")
  func order() async throws {
    try await TestWorld.run { world in
      let seen = Seen()
      let (a, b) = try await Self.scene(world) { node, cloud in
        for path in ["/a", "/a/b/c/d", "/a/b/clean/er"] {
          let isThere = ZDCTreesystemPath(path).flatMap(cloud.node(path:)) != nil
          seen.add("\(path) \(isThere)")
        }
        #expect(cloud.node(id: node.uuid)?.isUploaded == true)
        try cloud.delete(node)
      }
      try await b.sync()
      #expect(seen.lines == ["/a true", "/a/b/c/d true", "/a/b/clean/er true"])
      #expect(b.recorder.take() == ["deletedDirty /a [/a/b/c/d]"])
      try await world.settle(a, b)
      #expect(try await b.tree() == "")
    }
  }

  @Test func anUnansweredDelete_keepsThePath_andWaits() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.scene(world)
      world.mayWait(b)
      try await b.sync()
      #expect(b.recorder.take() == ["deletedDirty /a [/a/b/c/d]", "deleted /a/b/clean"])
      #expect(
        try await b.tree(versions: false) == """
          /a  "a"  [create deletedRemotely, putData deletedRemotely]
          /a/b  "b"  [create deletedRemotely, putData deletedRemotely]
          /a/b/c  "c"  [create deletedRemotely, putData deletedRemotely]
          /a/b/c/d  "mine"  [putData deletedRemotely, create deletedRemotely]
          """)
      let a0 = try await b.node("/a").uuid
      let explained = try await b.write { _, cloud in cloud.explain(nodeID: a0) }
      #expect(try #require(explained).operations.allSatisfy { $0.reason == .deletedRemotely })
      try await world.settle(a)
      #expect(try await a.tree() == "")
    }
  }

  enum Keeping: String, CaseIterable, Sendable {
    case insertNode, queueDataUpload, childOfIt, renamed
  }

  @Test("behaviour 10.11: the ancestors of a kept node are queued again, parents first", arguments: Keeping.allCases)
  func keptInsideTheCallback_isSentByTheSameSync(keeping: Keeping) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.scene(world) { _, cloud in
        var dirty = try Self.node("/a/b/c/d", cloud)
        switch keeping {
        case .insertNode: try cloud.insertNode(dirty)
        case .queueDataUpload: cloud.queueDataUpload(forNodeID: dirty.uuid, withChangeset: nil)
        case .childOfIt: try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a", "b", "c", "d", "e"]))
        case .renamed:
          dirty.name = "renamed"
          _ = try cloud.modifyNode(dirty)
        }
      }
      let before = try await b.node("/a/b/c/d").uuid
      try await b.sync()
      #expect(try await b.queueCount() == 0)
      try await world.settle(a, b)
      let name = keeping == .renamed ? "renamed" : "d"
      var expected = "/a  \"a\"\n/a/b  \"b\"\n/a/b/c  \"c\"\n/a/b/c/\(name)  \"mine\""
      if keeping == .childOfIt { expected += "\n/a/b/c/d/e" }
      #expect(try await a.tree(versions: false) == expected)
      #expect(try await b.node("/a/b/c/\(name)").uuid == before)
      let announced = a.recorder.lines.filter { $0.hasPrefix("new") }
      #expect(announced == announced.sorted(), "parents first")
    }
  }

  @Test(arguments: Keeping.allCases)
  func keptLater_isSentThen(keeping: Keeping) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.scene(world)
      try await b.sync()
      switch keeping {
      case .insertNode:
        try await b.write { _, cloud in
          try cloud.insertNode(try Self.node("/a/b/c/d", cloud))
        }
      case .queueDataUpload: try await b.edit("/a/b/c/d", "mine")
      case .childOfIt: try await b.create("/a/b/c/d/e")
      case .renamed: try await b.rename("/a/b/c/d", to: "renamed")
      }
      try await world.settle(b, a)
      #expect(try await b.queueCount() == 0)
      #expect(try await a.tree(versions: false).contains("\"mine\""))
    }
  }

  /// - found during a push: B's commit is refused, and the page that overtook it deletes the branch
  /// => the same: the abandoned request parks nothing that the callback queued
  @Test(arguments: [Keeping.insertNode, .queueDataUpload])
  func metWhilePushing_isKeptAllTheSame(keeping: Keeping) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.scene(world) { _, cloud in
        let dirty = try Self.node("/a/b/c/d", cloud)
        if keeping == .insertNode {
          try cloud.insertNode(dirty)
        } else {
          cloud.queueDataUpload(forNodeID: dirty.uuid, withChangeset: nil)
        }
      }
      // The commit is sent before the deletion is known.
      while try await b.push().commits > 0 {}
      #expect(b.recorder.lines.contains("deletedDirty /a [/a/b/c/d]"))
      #expect(try await b.queueCount() == 0)
      try await world.settle(a, b)
      #expect(try await a.tree(versions: false).hasSuffix("/a/b/c/d  \"mine\""))
    }
  }

  @Test func throwsInTheCallback_itIsCalledAgain_andNothingIsLost() async throws {
    struct AppError: Error {}
    try await TestWorld.run { world in
      let (a, b) = try await Self.scene(world) { _, _ in throw AppError() }
      await #expect(throws: AppError.self) { try await b.pull() }
      #expect(try await b.tree(versions: false).contains("/a/b/clean/er"))
      try await b.sync()
      #expect(b.recorder.lines.filter { $0.hasPrefix("deletedDirty") }.count == 2)
      try await b.edit("/a/b/c/d", "mine")
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false).hasSuffix("/a/b/c/d  \"mine\""))
    }
  }
}
