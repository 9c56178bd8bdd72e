import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// Content whose file is damaged, and small content, which has no file.
@Suite struct DamagedContentTests {
  /// - The file of a large content is gone, or was cut
  /// => the content, its leaves and its proof are answered with an error, on a connection that stays; check names it
  @Test("A5: a lost or cut file is answered, and named by check", .needsFolder, arguments: [0, 100_000])
  func lostFileIsAnswered(kept: Int) async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let large = BlobTests.Large(200_000)
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let node = NodeID.random()
      try await server.upload(large, node, zone, token: token)
      try await server.put([zone.record(node, content: large.field)], in: &zone, token: token)
      let path = folder + "/blobs/\(large.blob.text).content"
      if kept == 0 {
        try FileManager.default.removeItem(atPath: path)
      } else {
        try TestServer.write(Array(large.bytes[..<kept]), to: path)
      }
      let answer = try await server.content(large.blob, of: node, in: zone, token: token)
      #expect((answer.status, answer.error?.code) == (410, .blobGone))
      let base = Routes.path(Routes.content, zone.zone.tree.text, node.text, large.blob.text)
      let head = try await server.send(.GET, base, token: token, headers: [("range", "bytes=0-99")])
      #expect(head.status == (kept == 0 ? 410 : 206))
      try FileManager.default.removeItem(atPath: folder + "/blobs/\(large.blob.text).leaves")
      #expect(try await server.send(.GET, base + "/leaves", token: token).error?.code == .blobGone)
      #expect(try await server.send(.GET, base + "/proof", token: token).error?.code == .blobGone)
    }
    let findings = try DataFolder.check(path: folder).findings
    #expect(findings.contains { $0.fields.contains { $0.value == large.blob.text } })
  }

  @Test("S15: the proof of a small content is empty")
  func proofOfInlineContentIsEmpty() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let node = NodeID.random()
      let content = TestZone.Content()
      try await server.put([zone.record(node, content: content.field())], contents: [content], in: &zone, token: token)
      let base = Routes.path(Routes.content, zone.zone.tree.text, node.text, content.blob.text)
      let proof = try await server.send(.GET, base + "/proof", token: token)
      #expect((proof.status, proof.bytes) == (200, []))
    }
  }
}
