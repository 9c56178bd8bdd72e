import Foundation
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud

// The cost of very large content for a device that needs little of it, or has sent half of it.

extension Bench {
  private static let thumbnailBytes = 64 << 10

  /// Fetches a thumbnail from 10 GiB of content, on a device that knows the node.
  func thumbnail() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let words = try await putHuge(server)
    let transport = try CountingTransport(server: server.url)
    let device = try Device(server: server.url, folder: newFolder(), transport: transport)
    try await device.loginAndPull(words)
    try await device.app.discovered.wait(until: 1)
    guard let node = device.app.discoveredNodes.first, let downloads = device.zdc.downloadManager else {
      throw BenchError("no node")
    }
    _ = transport.take()
    let thumbnail = try await downloads.downloadNodeMeta(node, components: [.thumbnail]).thumbnail
    let counts = transport.take()
    guard thumbnail == Data(repeating: 0x74, count: Self.thumbnailBytes) else { throw BenchError("no thumbnail") }
    try await device.close()
    let size = Double(Self.thumbnailBytes) / 1_024
    return [
      Figure(
        "thumb-10g", Double(counts.requests.count),
        beside: Yardstick(name: "GiB of content", value: Double(scale.hugeBytes) / Double(1 << 30))),
      Figure(
        "thumb-10g-wire", Double(counts.bytes) / 1_024, beside: Yardstick(name: "the thumbnail itself", value: size)),
    ]
  }

  private func putHuge(_ server: ServerProcess) async throws -> [String] {
    let source = ZDCData(cleartextFileURL: try newFile(bytes: scale.hugeBytes))
    let app = BenchApp(content: source, thumbnail: Data(repeating: 0x74, count: Self.thumbnailBytes))
    let device = try Device(server: server.url, folder: newFolder(), app: app)
    let (user, words) = try await device.createAccount()
    let (time, _) = try await seconds {
      try await device.create(["huge"], user: user)
      try await device.app.pushed.wait(until: 1, seconds: 400)
    }
    note("\(scale.hugeBytes >> 20) MiB up in \(time) s")
    try await device.close()
    return words
  }

  /// Kills `zdc put` when half of its bytes have arrived, then runs it again.
  func resend() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let home = try newFolder()
    let device = try Device(server: server.url, folder: newFolder())
    let (_, words) = try await device.createAccount()
    try await device.close()
    let wordsFile = home.appendingPathComponent("words.txt")
    try Data(words.joined(separator: " ").utf8).write(to: wordsFile)
    let zdc = Program("zdc", home: home)
    _ = try zdc.run([
      "account", "login", "--server", server.url.absoluteString, "--words-file", wordsFile.path,
    ])
    let put = ["put", try newFile(bytes: scale.largeBytes).path, "home:/large.bin"]
    let before = try await server.receivedBytes()
    try await kill(zdc, put, when: { try await server.receivedBytes() - before >= Double(scale.largeBytes) / 2 })
    _ = try zdc.run(put, limit: 300)
    _ = try zdc.run(["sync"], limit: 300)
    // Includes the padding: 1 GiB grows by 1/32.
    let sizes = ContentSizes(data: scale.largeBytes)
    let total = try ContentLayout(sizes: sizes, padding: .padme).cipherLength
    let again = try await server.receivedBytes() - before - Double(total)
    guard again >= 0 else { throw BenchError("the second run left \(Int(-again)) bytes out") }
    return [
      Figure(
        "resend-1g", again / Double(total) * 100,
        beside: Yardstick(
          name: "one part", value: Double(ContentGeometry.partRange(0, cipherLength: total).count) / Double(total) * 100
        ))
    ]
  }

  private func kill(_ program: Program, _ arguments: [String], when isTime: () async throws -> Bool) async throws {
    let (process, _) = try program.start(arguments)
    while try await !isTime() {
      guard process.isRunning else { throw BenchError("it was over before it could be killed") }
      try await Task.sleep(for: .milliseconds(10))
    }
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}
