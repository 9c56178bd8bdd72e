import Foundation
import Testing
import ZeroDarkCloudTesting

/// The scanner finds planted canaries. Only then does a search that finds nothing prove something.
struct CanaryScannerTests {
  private static let canary = "canary-planted-7f3a91"
  private let scanner = CanaryScanner([Self.canary])

  @Test(arguments: ["utf8", "utf16le", "utf16be"])
  func plainText_isFound(form: String) {
    let text = "before \(Self.canary) after"
    let bytes: [UInt8] =
      switch form {
      case "utf16le": text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
      case "utf16be": text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
      default: Array(text.utf8)
      }
    #expect(scanner.scan(bytes, place: "here").map(\.form).contains(form))
  }

  @Test(arguments: [true, false])
  func hexadecimal_isFound(isUpper: Bool) {
    let hex = "x\(Self.canary)y".utf8.map { String(format: isUpper ? "%02X" : "%02x", $0) }.joined()
    #expect(scanner.scan(hex, place: "here").map(\.form) == [isUpper ? "HEX" : "hex"])
  }

  @Test(arguments: 0..<6)
  func base64_isFound_whereverItBegins(offset: Int) {
    let text = Data((String(repeating: "?", count: offset) + Self.canary + " and more").utf8).base64EncodedString()
    #expect(scanner.scan(text, place: "here").map(\.form) == ["base64+\(offset % 3)"])
  }

  /// Produced by zlib: with a fixed code, with and without a frame and as gzip, and with a dynamic code.
  @Test(arguments: [
    "eNorzs9NVSjPL0opVkhKTcsvStVRSE7MSyyq1C3IScwrSU3RNU8zTrQ01FFIzEuBKkxMK0ktskbRhS4LAFl5Hy8=",
    "H4sIAAAAAAACAyvOz01VKM8vSilWSEpNyy9K1VFITsxLLKrULchJzCtJTdE1TzNOtDTUUUjMS4EqTEwrSS2yRtGFLgsAts3DKVcAAAA=",
    "K87PTVUozy9KKVZISk3LL0rVUUhOzEssqtQtyEnMK0lN0TVPM060NNRRSMxLgSpMTCtJLbJG0YUuCwA=",
    "eNoLyUhVKCzNTM5WSCrKL89TSMuvsFYIIVpQQVFJWUVVTV1DU0tbR1dP38DQyNjE1MzcwtLK2sbWzt7B0cnZxdXN3cPTy9vH188/IDAoOCQ0LDwi"
      + "Mio6JjYuPiExKTklNS09IzMrOyc3L7+gsKi4pLSsvKKyqrqmto7Gxicn5iUWVeoW5CTmlaSm6JqnGSdaGgLlBgQBANaokQA=",
  ])
  func deflated_isFound(base64: String) throws {
    let bytes = [UInt8](try #require(Data(base64Encoded: base64)))
    let framed = base64.hasPrefix("K87") ? bytes : [0xff, 0x01] + bytes
    #expect(scanner.scan(framed, place: "here").map(\.form) == ["deflated utf8"])
  }

  @Test func randomBytes_areNotACanary() {
    let bytes = (0..<1_000_000).map { _ in UInt8.random(in: 0...255) }
    #expect(scanner.scan(bytes, place: "here").isEmpty)
  }

  /// A canary in the clear, planted in a blob of a server and in its log: the search must find it.
  @Test func plantedInAServersFolder_isFound() async throws {
    let server = try await TestServer.start()
    let planted = server.folder.appendingPathComponent("blobs/leak.content")
    try Data("xxxx\(Self.canary)xxxx".utf8).write(to: planted)
    let findings = try scanner.scan(folder: server.folder)
    #expect(findings.map(\.place) == ["blobs/leak.content"])
    #expect(findings.map(\.offset) == [4])
    server.log.append("info request name=\(Self.canary)")
    #expect(scanner.scan(server.log.text, place: "log").count == 1)
    try await server.stop()
  }

  /// A canary that the real client sends as the app tree ID, which the server does see.
  @Test func cleartextSentToTheServer_isFoundInItsFilesAndInTheTraffic() async throws {
    try await TestWorld.run { world in
      let a = try await TestDevice("A", server: world.server, clock: world.clock)
      a.network.keepTraffic()
      try await a.createAccount()
      let visible = CanaryScanner([TestDevice.treeID])
      #expect(try visible.scan(folder: world.server.folder).isEmpty == false)
      #expect(a.network.traffic.contains { !visible.scan($0, place: "traffic").isEmpty })
      try await a.close()
    }
  }
}
