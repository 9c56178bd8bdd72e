import Foundation
import Testing

/// Measures the cost of commands on a high-latency connection.
@Suite("Round trips of commands")
struct RoundTripTests {
  /// - A folder of 16 files that are too large for a batch, and 30 small ones
  /// => another device has them after the list of heads, the small files, and four rounds of four large files
  @Test func getOfManyFiles() async throws {
    try await withDevices { world, source in
      for number in 0..<16 { try Self.write(200_000, to: source.appendingPathComponent("large\(number)")) }
      for number in 0..<30 { try Self.write(500, to: source.appendingPathComponent("small\(number)")) }
      try await world.mustRun("a", "put", source.path, "home:/")
      try await world.mustRun("b", "sync")
      let target = world.folder.appendingPathComponent("copy")
      let cost = try await world.cost("b", "get", "home:/source", target.path)
      #expect(cost.roundTrips <= 8)
      for name in try FileManager.default.contentsOfDirectory(atPath: source.path) {
        let (one, other) = (source.appendingPathComponent(name), target.appendingPathComponent(name))
        #expect(try Data(contentsOf: one) == Data(contentsOf: other))
      }
    }
  }

  /// => the list of heads, then the content: over the same connection, or together with its hashes if it is too large
  /// to hold in memory
  @Test(arguments: [(bytes: 1_000_000, requests: 2), (bytes: 3_000_000, requests: 3)])
  func getOfOneLargeFile(bytes: Int, requests: Int) async throws {
    try await withDevices { world, source in
      try Self.write(bytes, to: source.appendingPathComponent("large"))
      try await world.mustRun("a", "put", source.path, "home:/")
      try await world.mustRun("b", "sync")
      let target = world.folder.appendingPathComponent("copy")
      let cost = try await world.cost("b", "get", "home:/source/large", target.path)
      #expect(cost.roundTrips <= 2)
      #expect(cost.requests == requests)
    }
  }

  private static func write(_ count: Int, to url: URL) throws {
    try Data((0..<count).map { _ in UInt8.random(in: .min ... .max) }).write(to: url)
  }

  private func withDevices(_ body: (ProgramWorld, _ source: URL) async throws -> Void) async throws {
    let world = try await ProgramWorld()
    do {
      let words = world.folder.appendingPathComponent("words").path
      let source = world.folder.appendingPathComponent("source")
      try FileManager.default.createDirectory(at: source, withIntermediateDirectories: true)
      try await world.mustRun("a", "account", "create", "--server", world.url, "--words-file", words)
      try await world.mustRun("b", "account", "login", "--server", world.url, "--words-file", words)
      try await body(world, source)
    } catch {
      await world.end()
      throw error
    }
    await world.end()
  }
}
