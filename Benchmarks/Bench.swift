import Foundation

/// The basis of every measurement. The measurements are in extensions, one file for each kind of work.
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

  /// Returns the path of an executable of the same build.
  static func program(_ name: String) -> URL {
    let own = Foundation.Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
    return own.resolvingSymlinksInPath().deletingLastPathComponent().appendingPathComponent(name)
  }
}

/// The size of every measurement.
struct Scale: Sendable {
  /// Number of runs of a long task.
  var runs: Int
  /// Number of runs of a short task.
  var samples: Int
  /// Number of nodes in the rows for 100,000 nodes.
  var manyNodes: Int
  /// Number of nodes in the branch that is grafted.
  var graftedNodes: Int
  /// Members of the largest access list.
  var members: Int
  /// Members with a device that is online.
  var onlineMembers: Int
  /// Commits in the log that a new member reads.
  var loggedCommits: Int
  /// Number of transfers of 1 GiB, and of pushes and pulls of 10,000 nodes next to 100,000.
  var largeRuns: Int
  /// Size of the content in the rows for 1 GiB.
  var largeBytes: UInt64
  /// Size of the content in the rows for 10 GiB.
  var hugeBytes: UInt64
  var idleSeconds: Int
  /// Accounts with two devices each.
  var accounts: Int
  /// Honest devices next to a hostile account.
  var honest: Int
  /// Edits of each device.
  var edits: Int
  /// Seconds from one edit of a device to its next one.
  var editSeconds = 1
  /// Accounts with one device each, which commits in one zone.
  var zones: Int
  /// Commits in each of these zones.
  var zoneCommits: Int
  /// Nodes that each of ten contending devices creates.
  var contended: Int

  static let full = Scale(
    runs: 5, samples: 400, manyNodes: 100_000, graftedNodes: 100_000, members: 1_000, onlineMembers: 100,
    loggedCommits: 100_000,
    largeRuns: 3, largeBytes: 1 << 30,
    hugeBytes: 10 << 30, idleSeconds: 10,
    accounts: 100, honest: 50, edits: 20, zones: 1_000, zoneCommits: 10, contended: 50)
  static let quick = Scale(
    runs: 1, samples: 100, manyNodes: 20_000, graftedNodes: 20_000, members: 200, onlineMembers: 20,
    loggedCommits: 2_000,
    largeRuns: 1, largeBytes: 128 << 20,
    hugeBytes: 512 << 20, idleSeconds: 2,
    accounts: 20, honest: 20, edits: 5, zones: 100, zoneCommits: 10, contended: 30)
}

/// The error if there is not enough disk space for a row.
struct NoRoom: Error, CustomStringConvertible {
  var needed: UInt64
  var free: UInt64

  var description: String { "needs \(needed >> 20) MiB of disk, \(free >> 20) MiB are free" }
}

extension Bench {
  /// - Throws: ``NoRoom`` if there is not enough space, with a reserve for other programs.
  func checkDisk(_ bytes: UInt64) throws {
    let attributes = try FileManager.default.attributesOfFileSystem(forPath: folder.path)
    guard let free = (attributes[.systemFreeSize] as? NSNumber)?.uint64Value else { return }
    let needed = bytes + (1 << 30)
    guard bytes == 0 || free >= needed else { throw NoRoom(needed: needed, free: free) }
  }

  /// Removes the files that one group of rows left on disk, before the next group.
  func clear() {
    do {
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
        try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
      }
    } catch { note("cannot clear \(folder.path): \(error)") }
  }

  /// Returns a sparse file of zeros. It takes no disk space, but data made from it does.
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

/// Returns the seconds that the work takes, and its result.
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
