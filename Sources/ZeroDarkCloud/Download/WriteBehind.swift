internal import Foundation

/// Writes to a file while its caller makes the next bytes: opening a content and writing it take about the same time.
///
/// Bytes are written in their order, and each write ends before the next begins; so what a file has after a crash is
/// the beginning of what it was given.
struct WriteBehind {
  private static let chunk = 1 << 20

  private let file: LocalFile
  private var waiting: [UInt8] = []
  private var writing: Task<Void, any Error>?

  init(_ file: LocalFile) {
    self.file = file
  }

  /// Takes bytes, and waits for the last chunk if another one is full: two are held at most.
  ///
  /// - Throws: what an earlier write met.
  mutating func append(_ bytes: [UInt8]) async throws {
    waiting += bytes
    if waiting.count >= Self.chunk { try await writeAll() }
  }

  /// Returns when everything is written.
  mutating func finish() async throws {
    try await writeAll()
    try await writing?.value
  }

  private mutating func writeAll() async throws {
    try await writing?.value
    let bytes = waiting
    waiting = []
    waiting.reserveCapacity(Self.chunk + Self.chunk / 4)
    writing = Task { [file] in try file.write(bytes) }
  }
}
