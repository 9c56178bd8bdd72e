import Foundation
import ZeroDarkCloud

// Ten thousand nodes, pushed and then pulled by a fresh device.

extension Bench {
  private struct Bulk {
    var push: [Double] = []
    var skeleton: [Double] = []
    var pull: [Double] = []
    var wire: [Double] = []
    var disk: [Double] = []
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
    ]
  }

  private func measure(_ bulk: inout Bulk) async throws {
    let server = try await ServerProcess(folder: newFolder())
    let words = try await push(server, &bulk)
    try await pull(server, words, &bulk)
    server.stop()
    bulk.disk.append(try diskBytes(server.folder) / Double(Self.nodes))
  }

  /// Measures from the first transaction to the last `didPushNodeData`.
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

  /// Measures from the words until every node is announced, and on until every content is opened.
  private func pull(_ server: ServerProcess, _ words: [String], _ bulk: inout Bulk) async throws {
    let device = try Device(server: server.url, folder: newFolder())
    let (skeleton, _) = try await seconds {
      try await device.login(words)
      try await device.app.discovered.wait(until: Self.nodes)
      try await device.settle()
    }
    let (contents, _) = try await seconds { try await device.downloadAll(Self.nodes) }
    bulk.skeleton.append(skeleton)
    bulk.pull.append(skeleton + contents)
    try await device.close()
  }
}
