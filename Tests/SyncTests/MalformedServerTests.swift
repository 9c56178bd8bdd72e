import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// For a while, something that does not speak HTTP answers at the server's address.
@Suite(.timeLimit(.minutes(20))) struct MalformedServerTests {
  @Test(
    "F1: sync and get end with a typed error, and succeed once the server is back",
    arguments: [
      "HTTP/1.1 000 X\r\n\r\n", "HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n",
      "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",
    ])
  func syncAndGet_endWithATypedError(_ answer: String) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await a.sync()
      try await b.sync()
      try await a.create("/g", "2")
      let port = try #require(world.server.url.port.flatMap(UInt16.init(exactly:)))
      try await world.server.stop()
      let raw = try RawServer(port: port) { _ in Array(answer.utf8) }
      for _ in 0..<3 {
        await #expect(throws: TransportError.self) { try await a.sync() }
        await #expect(throws: (any Error).self) { try await b.download() }
      }
      #expect(try await a.queueCount() > 0)
      raw.end()
      await raw.waitUntilEnded()
      try await world.server.restart()
      try await world.settle(a, b)
      #expect(try await b.tree() == "/f  v1  \"1\"\n/g  v1  \"2\"")
    }
  }
}
