import Foundation
import Testing

/// How much an interrupted upload may send again: the part in flight, of 128 leaves, and the requests around it.
enum Resuming {
  static let mostBytes = 128 * 65_600 + 56 + (1 << 18)
}

extension KillStory {
  var words: URL { world.folder.appendingPathComponent("words") }

  func local(_ path: String) -> URL { world.want.appendingPathComponent(path) }

  // MARK: Files

  /// A folder of small files in two levels.
  mutating func makeSmall() throws -> URL {
    let folder = local("small/round-\(round)")
    let count = dice.number(30...60)
    for number in 0..<count {
      let place = number % 3 == 0 ? folder : folder.appendingPathComponent("sub-\(number % 5)")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      try Data(dice.bytes(dice.number(0...3_000))).write(to: place.appendingPathComponent("file-\(number)"))
    }
    return folder
  }

  mutating func makeLarge(_ name: String? = nil) throws -> URL {
    let file = local("large/\(name ?? "large-\(round)")")
    // The same random block again and again, with a different first byte each time: sealed data has no pattern anyway.
    let block = dice.bytes(1 << 20)
    var bytes: [UInt8] = []
    for number in 0..<UInt8(Self.largeBytes >> 20) { bytes += [number] + block.dropFirst() }
    try Data(bytes + dice.bytes(dice.number(1...100_000))).write(to: file)
    return file
  }

  func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: local(folder).path).sorted()
  }

  /// Paths of the files and folders below.
  func paths(below folder: URL) throws -> Set<String> {
    Set(try FileManager.default.subpathsOfDirectory(atPath: folder.path))
  }

  func files(below folder: URL) throws -> [String] {
    try paths(below: folder).filter { path in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: folder.appendingPathComponent(path).path, isDirectory: &isFolder)
        && !isFolder.boolValue
    }
  }

  // MARK: Devices

  func login(_ device: String) async throws {
    try await world.mustRun(device, "account", "login", "--server", world.url, "--words-file", words.path)
  }

  func discard(_ device: String, _ copy: URL) throws {
    try world.remove(device)
    try FileManager.default.removeItem(at: copy)
  }

  /// Gets everything on a device that has never seen anything.
  private func freshCopy(_ said: String) async throws -> (device: String, copy: URL) {
    let device = "fresh"
    let copy = world.folder.appendingPathComponent("copy")
    try await login(device)
    let got = try await world.zdc(device, ["get", "home:/", copy.path])
    // Files that a killed put announced but has not sent yet are named in the errors; all others are downloaded.
    let isPartial = got.status == 1 && got.errors.contains("no content in the cloud yet")
    try #require(got.status == 0 || isPartial, "\(said)\nzdc get: \(got.errors)")
    return (device, copy)
  }

  // MARK: Invariants

  /// After the kill, before any recovery: a fresh device has everything that the server acknowledged, complete.
  ///
  /// - Parameter isAll: the command reported that it finished.
  func expectAcknowledged(_ isAll: Bool, _ said: String) async throws {
    let synced = try await syncedPaths()
    let (device, copy) = try await freshCopy(said)
    let there = try paths(below: copy)
    let wanted = try paths(below: world.want)
    #expect(there.isSubset(of: wanted), "more than was put: \(there.subtracting(wanted).sorted().prefix(5)); \(said)")
    #expect(synced.isSubset(of: there), "lost: \(synced.subtracting(there).sorted().prefix(5)); \(said)")
    if isAll { #expect(there == wanted, "lost: \(wanted.subtracting(there).sorted().prefix(5)); \(said)") }
    for path in try files(below: copy) {
      let bytes = try Data(contentsOf: copy.appendingPathComponent(path))
      let isGood = try bytes == Data(contentsOf: local(path)) || (!isAll && bytes == outdated[path])
      #expect(isGood, "\(path) has other bytes (\(bytes.count)); \(said)")
    }
    try discard(device, copy)
  }

  /// Paths of the nodes that the author considers acknowledged.
  private func syncedPaths() async throws -> Set<String> {
    let listed = try await world.mustRun(Self.author, "tree", "--json")
    return Set(
      try listed.output.split(separator: "\n").compactMap { line in
        let node = try JSONDecoder().decode(ListedLine.self, from: Data(line.utf8))
        return node.state == "synced" ? String(node.path.dropFirst("home:/".count)) : nil
      })
  }

  private struct ListedLine: Decodable {
    var path: String
    var state: String
  }

  private struct StatusLine: Decodable {
    struct Queue: Decodable { var total: Int }
    var nodes: Int
    var quarantined: Int
    var queue: Queue
  }

  /// After the recovery: the queue is empty, and a fresh device has everything that is wanted, exactly once.
  func expectSettled(_ said: String) async throws {
    try await world.mustRun(Self.author, "sync")
    try await expectAll(said)
  }

  func expectAll(_ said: String) async throws {
    let (device, copy) = try await freshCopy(said)
    try expectEqual(world.want, copy, said)
    let count = try paths(below: world.want).count
    for name in [Self.author, device] {
      let answer = try await world.mustRun(name, "status", "--offline", "--json").output
      let status = try JSONDecoder().decode(StatusLine.self, from: Data(answer.utf8))
      #expect(status.nodes == count, "\(name) has \(status.nodes) nodes instead of \(count); \(said)")
      #expect(status.queue.total == 0 && status.quarantined == 0, "\(name): \(answer)\(said)")
    }
    try discard(device, copy)
  }

  func expectEqual(_ wanted: URL, _ copy: URL, _ said: String) throws {
    let (left, right) = (try paths(below: wanted), try paths(below: copy))
    #expect(left == right, "\(left.symmetricDifference(right).sorted().prefix(5)); \(said)")
    for path in try files(below: wanted) where right.contains(path) {
      let (a, b) = (wanted.appendingPathComponent(path), copy.appendingPathComponent(path))
      #expect(try Data(contentsOf: a) == Data(contentsOf: b), "\(path) differs; \(said)")
    }
  }
}
