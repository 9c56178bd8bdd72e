import Foundation

/// What every measurement needs. Its extensions measure, one file for each kind of work.
struct Bench {
  let folder: URL
  /// How often a long piece of work is done.
  let runs: Int
  /// How often a short one is.
  let samples: Int

  static let nodes = 10_000
  static let contentBytes = 300

  func newFolder() throws -> URL {
    let url = folder.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    return url
  }

  /// An executable of the same build.
  static func program(_ name: String) -> URL {
    let own = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
    return own.resolvingSymlinksInPath().deletingLastPathComponent().appendingPathComponent(name)
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
