import Foundation
import ZeroDarkCloud

// Ten thousand nodes up, and down to a fresh device.

extension Bench {
  private struct Bulk {
    var push: [Double] = []
    var skeleton: [Double] = []
    var pull: [Double] = []
    var wire: [Double] = []
    var disk: [Double] = []
    var memory: [Double] = []
    var memoryAtStart: [Double] = []
  }

  func bulk() async throws -> [Figure] {
    var bulk = Bulk()
    for run in 1...runs {
      try await measure(&bulk)
      note("run \(run): \(bulk.push.last ?? 0) s, \(bulk.skeleton.last ?? 0) s, \(bulk.pull.last ?? 0) s")
    }
    let rows = try rowsYardstick()
    let plain = Yardstick(name: "the content itself", value: Double(Self.contentBytes))
    return [
      Figure("push-10k", bulk.push, beside: rows), Figure("skeleton-10k", bulk.skeleton, beside: rows),
      Figure("pull-10k", bulk.pull, beside: rows), Figure("wire-node", bulk.wire, beside: plain),
      Figure("disk-node", bulk.disk, beside: plain),
      Figure(
        "rss-server", bulk.memory, beside: Yardstick(name: "server without users", value: median(bulk.memoryAtStart))),
    ]
  }

  private func measure(_ bulk: inout Bulk) async throws {
    let server = try await ServerProcess(folder: newFolder())
    bulk.memoryAtStart.append(try server.memory.peak)
    let words = try await push(server, &bulk)
    try await pull(server, words, &bulk)
    bulk.memory.append(try server.memory.peak)
    server.stop()
    bulk.disk.append(try diskBytes(server.folder) / Double(Self.nodes))
  }

  /// First transaction to last `didPushNodeData`.
  private func push(_ server: ServerProcess, _ bulk: inout Bulk) async throws -> [String] {
    let device = try Device(server: server.url, folder: newFolder())
    let (user, words) = try await device.createAccount()
    let before = try await server.receivedBytes()
    let (time, _) = try await seconds {
      try await device.create((0..<Self.nodes).map { "node \($0)" }, user: user)
      try await device.app.pushed.wait(until: Self.nodes)
      try await device.settle()
    }
    bulk.push.append(time)
    bulk.wire.append((try await server.receivedBytes() - before) / Double(Self.nodes))
    try await device.close()
    return words
  }

  /// Words to everything announced, and on to everything opened.
  private func pull(_ server: ServerProcess, _ words: [String], _ bulk: inout Bulk) async throws {
    let device = try Device(server: server.url, folder: newFolder())
    let (skeleton, _) = try await seconds {
      try await device.login(words)
      try await device.app.discovered.wait(until: Self.nodes)
      try await device.settle()
    }
    let (contents, _) = try await seconds { try await download(device) }
    bulk.skeleton.append(skeleton)
    bulk.pull.append(skeleton + contents)
    try await device.close()
  }

  private func download(_ device: Device) async throws {
    guard let downloads = device.zdc.downloadManager else { throw BenchError("not unlocked") }
    var bytes = 0
    for try await download in downloads.downloadContents(of: device.app.discoveredNodes) {
      guard case .memory(let data, _, _) = try download.content.get() else {
        throw BenchError("a small node in a file")
      }
      bytes += data.count
    }
    guard bytes == Self.nodes * Self.contentBytes else { throw BenchError("contents are missing") }
  }
}
