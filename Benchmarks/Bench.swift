import Foundation

/// What every measurement needs. Its extensions measure, one file for each kind of work.
struct Bench {
  let folder: URL
  let scale: Scale

  var runs: Int { scale.runs }
  var samples: Int { scale.samples }

  static let nodes = 10_000
  static let contentBytes = 300

  func newFolder() throws -> URL {
    let url = folder.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url
  }

  /// An executable of the same build.
  static func program(_ name: String) -> URL {
    let own = Foundation.Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
    return own.resolvingSymlinksInPath().deletingLastPathComponent().appendingPathComponent(name)
  }
}

/// How much of everything.
struct Scale: Sendable {
  /// How often a long piece of work is done.
  var runs: Int
  /// How often a short one is.
  var samples: Int
  /// What the rows for 100,000 nodes take.
  var manyNodes: Int
  /// How often 1 GiB goes up and down, and 10,000 nodes do beside 100,000.
  var largeRuns: Int
  /// What the rows for 1 GiB take.
  var largeBytes: UInt64
  /// What the rows for 10 GiB take.
  var hugeBytes: UInt64
  var idleSeconds: Int
  /// Accounts of two devices each.
  var accounts: Int
  /// Honest devices beside a hostile account.
  var honest: Int
  /// Edits of each device.
  var edits: Int
  /// Nodes that each of ten contending devices makes.
  var contended: Int

  static let full = Scale(
    runs: 5, samples: 400, manyNodes: 100_000, largeRuns: 3, largeBytes: 1 << 30, hugeBytes: 10 << 30, idleSeconds: 10,
    accounts: 100, honest: 50, edits: 20, contended: 50)
  static let quick = Scale(
    runs: 1, samples: 100, manyNodes: 20_000, largeRuns: 1, largeBytes: 128 << 20, hugeBytes: 512 << 20, idleSeconds: 2,
    accounts: 20, honest: 20, edits: 5, contended: 30)
}

/// There is not enough disk for a row.
struct NoRoom: Error, CustomStringConvertible {
  var needed: UInt64
  var free: UInt64

  var description: String { "needs \(needed >> 20) MiB of disk, \(free >> 20) MiB are free" }
}

extension Bench {
  /// - Throws: ``NoRoom`` if there is not enough, with something left for others.
  func checkDisk(_ bytes: UInt64) throws {
    let attributes = try FileManager.default.attributesOfFileSystem(forPath: folder.path)
    guard let free = (attributes[.systemFreeSize] as? NSNumber)?.uint64Value else { return }
    let needed = bytes + (1 << 30)
    guard bytes == 0 || free >= needed else { throw NoRoom(needed: needed, free: free) }
  }

  /// What one group of rows left on disk is not kept for the next.
  func clear() {
    do {
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
        try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
      }
    } catch { note("cannot clear \(folder.path): \(error)") }
  }

  /// A file of zeros that takes no room itself; what is made of it does.
  func newFile(bytes: UInt64) throws -> URL {
    let url = try newFolder().appendingPathComponent("zeros.bin")
    guard FileManager.default.createFile(atPath: url.path, contents: nil) else { throw BenchError("cannot write") }
    let file = try FileHandle(forWritingTo: url)
    try file.truncate(atOffset: bytes)
    try file.close()
    return url
  }
}

struct BenchError: Error, CustomStringConvertible {
  var description: String

  init(_ description: String) {
    self.description = description
  }
}

struct TemporaryFolder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  func remove() {
    do { try FileManager.default.removeItem(at: url) } catch { note("cannot remove \(url.path): \(error)") }
  }
}

/// Seconds that a piece of work takes.
func seconds<T>(_ work: () async throws -> T) async rethrows -> (Double, T) {
  let start = ContinuousClock.now
  let result = try await work()
  return ((ContinuousClock.now - start).seconds, result)
}

func secondsAtOnce<T>(_ work: () throws -> T) rethrows -> (Double, T) {
  let start = ContinuousClock.now
  let result = try work()
  return ((ContinuousClock.now - start).seconds, result)
}

extension Duration {
  var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
