import Foundation
import ZDCProtocol
import ZeroDarkCloud

// A hundred thousand nodes and 1 GiB, on one server: time, memory, and idle cost afterwards.

extension Bench {
  func big() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let memoryAtStart = try server.memory.peak
    let start = try Worker.run(.start, server, folder: newFolder())
    let client = Yardstick(name: "a client with an account", value: start.peak)
    var figures = try await many(server, beside: client)
    figures += try await large(server, beside: client)
    figures.append(
      Figure(
        "rss-server", try server.memory.peak, beside: Yardstick(name: "server without users", value: memoryAtStart)))
    server.stop()
    return figures
  }

  // MARK: Many nodes

  private func many(_ server: ServerProcess, beside client: Yardstick) async throws -> [Figure] {
    let few = try (0..<scale.largeRuns).map { _ in try roundTrip(server, nodes: Self.nodes).results }
    for one in few { note("\(Self.nodes) nodes: \(one.push.seconds) s up, \(one.pull.seconds) s down") }
    let (many, folder) = try roundTrip(server, nodes: scale.manyNodes)
    note("\(scale.manyNodes) nodes: \(many.push.seconds) s up, \(many.pull.seconds) s down")
    let perHundredThousand = 100_000 / Double(scale.manyNodes)
    func figure(_ id: String, _ value: Double, _ base: [Double]) -> Figure {
      let base = Yardstick(name: "10,000 nodes, the same way", value: median(base))
      return Figure(id, value, beside: base, scale: perHundredThousand)
    }
    return [
      figure("push-100k", many.push.seconds, few.map(\.push.seconds)),
      figure("pull-100k", many.pull.seconds, few.map(\.pull.seconds)),
      Figure("rss-client-100k", max(many.push.peak, many.pull.peak), beside: client),
    ] + (try await idle(server, folder))
  }

  private func roundTrip(
    _ server: ServerProcess, nodes: Int
  ) throws -> (results: (push: Worker.Result, pull: Worker.Result), folder: URL) {
    let push = try Worker.run(.push, server, folder: newFolder(), nodes: nodes)
    let folder = try newFolder()
    let pull = try Worker.run(.pull, server, folder: folder, nodes: nodes, words: push.words)
    return ((push, pull), folder)
  }

  /// Measures a device that already has everything.
  private func idle(_ server: ServerProcess, _ folder: URL) async throws -> [Figure] {
    let transport = try CountingTransport(server: server.url)
    let device = try Device(server: server.url, folder: folder, transport: transport)
    let updates = try device.updates()
    try await device.online(updates)
    note("coming up, an idle device asks \(transport.take().requests.count) times")
    try await Task.sleep(for: .seconds(scale.idleSeconds))
    let quiet = transport.take()
    transport.cut()
    try await device.online(updates)
    try await Task.sleep(for: .seconds(1))
    let again = transport.take()
    note("reconnecting, it asks \(again.requests.joined(separator: ", ")) and \(again.bytes) bytes are exchanged")
    guard again.bytes < 64 << 10 else { throw BenchError("the answer to a reconnect grows with the tree") }
    try await device.close()
    return [
      Figure(
        "idle", Double(quiet.requests.count),
        beside: Yardstick(name: "seconds with an open stream", value: Double(scale.idleSeconds))),
      Figure(
        "idle-reconnect", Double(again.requests.count),
        beside: Yardstick(name: "bytes both ways", value: Double(again.bytes))),
    ]
  }

  // MARK: One large content

  private struct LargeRound {
    var put: Double
    var get: Double
    var plain: (put: Double, get: Double)
    var peak: Double
  }

  /// Alternates with plain transfers: pending disk writes slow down the next run.
  private func large(_ server: ServerProcess, beside client: Yardstick) async throws -> [Figure] {
    let source = try newFile(bytes: scale.largeBytes)
    var rounds: [LargeRound] = []
    for _ in 0..<scale.largeRuns { rounds.append(try await largeRound(server, source)) }
    let megabytes = Double(scale.largeBytes) / 1e6
    func figure(_ id: String, _ times: [Double], _ yardstick: String, _ plain: [Double]) -> Figure {
      Figure(
        id, times.map { megabytes / $0 },
        beside: Yardstick(name: yardstick, value: median(plain.map { megabytes / $0 })))
    }
    return [
      figure("put-1g", rounds.map(\.put), "plain PUT of the same parts", rounds.map(\.plain.put)),
      figure("get-1g", rounds.map(\.get), "plain GET into a file", rounds.map(\.plain.get)),
      Figure("rss-client-1g", rounds.map(\.peak).max() ?? 0, beside: client, runs: rounds.count),
    ]
  }

  private func largeRound(_ server: ServerProcess, _ source: URL) async throws -> LargeRound {
    let target = try newFolder().appendingPathComponent("got.bin")
    let put = try Worker.run(.put, server, folder: newFolder(), file: source)
    let get = try Worker.run(.get, server, folder: newFolder(), file: target, words: put.words)
    guard try isSame(source, target) else { throw BenchError("the file came back changed") }
    try FileManager.default.removeItem(at: target)
    let plain = try await plainTransfer(server, words: put.words)
    note("put \(put.seconds) s, plain \(plain.put) s; get \(get.seconds) s, plain \(plain.get) s")
    return LargeRound(put: put.seconds, get: get.seconds, plain: plain, peak: max(put.peak, get.peak))
  }

  private func isSame(_ a: URL, _ b: URL) throws -> Bool {
    let files = (try FileHandle(forReadingFrom: a), try FileHandle(forReadingFrom: b))
    while true {
      let left = try files.0.read(upToCount: 4 << 20) ?? Data()
      guard left == (try files.1.read(upToCount: 4 << 20) ?? Data()) else { return false }
      if left.isEmpty { return true }
    }
  }

  /// Transfers the same bytes to and from the same server, with nothing sealed, opened or verified.
  private func plainTransfer(_ server: ServerProcess, words: [String]) async throws -> (put: Double, get: Double) {
    let device = try Device(server: server.url, folder: newFolder())
    try await device.loginAndPull(words)
    guard let text = device.app.discoveredNodes.first?.localUserID, let user = UserID(text: text),
      let users = device.zdc.localUserManager
    else { throw BenchError("nothing was pulled") }
    let api = try await users.serverAPI(for: user)
    guard let zone = try await api.zones(since: nil).zones.first(where: { $0.seq > 0 })?.zone else {
      throw BenchError("no zone")
    }
    let record = try await largeRecord(api, zone)
    guard let content = record.fields.content else { throw BenchError("no content") }
    let put = try await seconds { try await plainPut(api, zone, content.cipherLength) }.0
    let get = try await seconds { try await plainGet(api, zone, record.fields.node, content) }.0
    try await device.close()
    return (put, get)
  }

  private func largeRecord(_ api: ServerAPI, _ zone: ZoneID) async throws -> NodeRecord {
    var bundle = ZDCProtocol.Bundle.Reader(try await api.commitPage(zone, after: nil, withRecords: true).body)
    for case .record(_, _, let record) in try bundle.all() where record.fields.content != nil { return record }
    throw BenchError("no record with content")
  }

  private func plainPut(_ api: ServerAPI, _ zone: ZoneID, _ length: UInt64) async throws {
    let blob = BlobID.random()
    _ = try await api.openBlob(
      BlobTicketRequest(blobID: blob, treeID: zone.tree, nodeID: .random(), cipherLength: length))
    for index in 0..<ContentGeometry.partCount(cipherLength: length) {
      let range = ContentGeometry.partRange(index, cipherLength: length)
      let bytes = [UInt8](repeating: 0x5a, count: range.count)
      let hash = MerkleTree.partHash(bytes, part: index, cipherLength: length)
      try await api.putPart(blob, index: index, bytes: bytes, hash: hash)
    }
    _ = try await api.completeBlob(blob)
    try await api.abortBlob(blob)
  }

  private func plainGet(_ api: ServerAPI, _ zone: ZoneID, _ node: NodeID, _ content: NodeRecord.Content) async throws {
    let url = try newFolder().appendingPathComponent("plain.bin")
    guard FileManager.default.createFile(atPath: url.path, contents: nil) else { throw CocoaError(.fileWriteUnknown) }
    let file = try FileHandle(forWritingTo: url)
    let answer = try await api.content(zone, node: node, blob: content.blobID)
    var length: UInt64 = 0
    for try await slice in answer.body {
      try file.write(contentsOf: slice)
      length += UInt64(slice.count)
    }
    try file.synchronize()
    try file.close()
    try FileManager.default.removeItem(at: url)
    guard length == content.cipherLength else { throw BenchError("the content is short") }
  }
}
