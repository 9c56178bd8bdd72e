import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A full account: which changes wait, which ones do not, and that nothing is lost.
struct QuotaTests {
  /// - /first fills the account, /second does not fit
  /// => /second waits for room and reports that; renames and deletes continue; after the delete it is sent
  @Test func largeContentBeyondTheQuota_waits_andIsSentWhenThereIsRoom() async throws {
    try await TestWorld.run(quotaBytes: 250_000) { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let contents = [EndToEndTests.bytes(150_000, seed: 1), EndToEndTests.bytes(160_000, seed: 2)]
      try await a.create("/note", "1")
      for (name, content) in zip(["/first", "/second"], contents) {
        let node = try await a.create(name)
        a.recorder.serve(ZDCData(data: content), forNodeID: node.uuid)
        try await a.sync()
      }
      #expect(try await a.queue().contains("overQuota"))
      #expect(try await a.queueCount() == 1)
      try await a.rename("/note", to: "paper")
      try await a.sync()
      #expect(try await a.queueCount() == 1)
      try await a.delete("/first")
      try await a.sync()
      world.clock.advance(by: .seconds(600))
      try await world.settle(a, b)
      #expect(try await a.queueCount() == 0)
      #expect(try await b.content(of: "/second")?.data == contents[1])
      #expect(try await b.tree(versions: false).contains("/paper"))
    }
  }

  /// Small content is part of the commit: the server refuses the commit, and what needs no room is sent without it.
  @Test func smallContentBeyondTheQuota_holdsNeitherItsNodeNorOtherChanges() async throws {
    try await TestWorld.run(quotaBytes: 6_000) { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/old", "1")
      try await a.sync()
      try await a.rename("/old", to: "new")
      for number in 1...8 { try await a.create("/n\(number)", String(repeating: "x", count: 1_000)) }
      try await a.sync()
      #expect(try await a.queue().contains("overQuota"))
      _ = try await b.sync()
      #expect(try await b.tree(versions: false).contains("/new"))
      try await world.server.restart(quotaBytes: 0)
      world.clock.advance(by: .seconds(600))
      try await world.settle(a, b)
      #expect(try await a.queueCount() == 0)
      #expect(try await b.content(of: "/n8")?.data == Data(String(repeating: "x", count: 1_000).utf8))
    }
  }
}
