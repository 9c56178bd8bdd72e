import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A commit's content and records are prepared while the commit before it is in flight. Changes that the app or others
/// make in the meantime are honoured.
@Suite(.timeLimit(.minutes(20))) struct PushAheadTests {
  private static let nodes = 1_100

  private static func createNodes(_ device: TestDevice) async throws {
    try await device.write { _, cloud in
      for number in 0..<nodes { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"])) }
    }
  }

  @Test func eachContent_isAskedForOnce() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.createNodes(a)
      try await a.pull()
      a.network.fail(.after { await a.recorder.wait(for: "data /\(Self.nodes - 1)") }, "POST", "/v1/commits")
      try await a.sync()
      #expect(a.recorder.lines.filter { $0.hasPrefix("data") }.count == Self.nodes)
      #expect(a.network.count("POST", "/v1/commits") == 2)
      #expect(try await a.queueCount() == 0)
    }
  }

  /// - the app edits, renames, moves and deletes nodes that are prepared for the second commit
  /// => the other device has the app's latest changes
  @Test func changesDuringPreparation_areSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await Self.createNodes(a)
      try await a.pull()
      a.network.fail(
        .after {
          await a.recorder.wait(for: "data /1099")
          try await a.edit("/1050", "edited")
          try await a.rename("/1060", to: "renamed")
          try await a.move("/1070", to: "/1/moved")
          try await a.delete("/1080")
        }, "POST", "/v1/commits")
      try await a.sync()
      try await world.settle(a, b)
      #expect(try await b.content(of: "/1050")?.data == Data("edited".utf8))
      #expect(try await b.node("/renamed").isUploaded)
      #expect(try await b.node("/1/moved").isUploaded)
      await #expect(throws: (any Error).self) { try await b.node("/1080") }
      let trees = (try await a.tree(), try await b.tree())
      #expect(trees.0 == trees.1)
      #expect(try await a.queueCount() == 0)
    }
  }

  /// - another device's commit comes first, when the second commit is already prepared
  /// => both are planned again; nothing is lost or duplicated
  @Test func aCommitThatIsOvertaken_takesNothingWithIt() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await Self.createNodes(a)
      a.network.fail(
        .before {
          await a.recorder.wait(for: "data /1099")
          try await b.create("/of B", "b")
          try await b.sync()
        }, "POST", "/v1/commits")
      try await a.sync()
      try await world.settle(a, b)
      #expect(try world.server.nodeCount() == Self.nodes + 1)
      let trees = (try await a.tree(), try await b.tree())
      #expect(trees.0 == trees.1)
      #expect(a.recorder.lines.filter { $0.hasPrefix("conflict") } == [])
    }
  }

  /// - the answer to the first commit is lost, when the second one is already prepared
  @Test func aLostResponse_changesNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.createNodes(a)
      try await a.pull()
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: TransportError.self) { try await a.push() }
      try await a.sync()
      #expect(try world.server.nodeCount() == Self.nodes)
      #expect(try await a.queueCount() == 0)
    }
  }
}
