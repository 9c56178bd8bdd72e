import Foundation
import TodoKit

/// An untrusted photo, which may come from an attacker.
///
/// This process checks only the format and the size. `vipsthumbnail` decodes the picture in another process with limits
/// on memory, time and output. A picture that exploits a decoder therefore affects only that process.
struct Picture: Sendable {
  static let maxBytes = Photos.maxBytes
  static let maxPixels = 100_000_000
  private static let seconds = 10

  let data: Data
  /// The media type, sent with `nosniff`.
  let mediaType: String

  /// Reads a file, after a check of its size.
  init(file: URL) throws {
    if let size = try file.resourceValues(forKeys: [.fileSizeKey]).fileSize { try Self.check(size) }
    try self.init(Data(contentsOf: file))
  }

  /// - Throws: `Failure` if the data is too large, or neither JPEG, PNG nor WebP.
  init(_ data: Data) throws {
    try Self.check(data.count)
    guard let type = Self.mediaType(data.prefix(12)) else {
      throw Failure(.data, "notAPicture", "this is not a JPEG, PNG or WebP picture")
    }
    (self.data, mediaType) = (data, type)
  }

  private static func check(_ size: Int) throws {
    guard size <= maxBytes else {
      throw Failure(.data, "tooLarge", "the photo has \(size / 1_000_000) MB; the limit is 25 MB")
    }
  }

  static func mediaType(_ head: Data) -> String? {
    let bytes = Array(head)
    if bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return "image/jpeg" }
    if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return "image/png" }
    if bytes.count == 12, bytes.starts(with: Array("RIFF".utf8)), bytes[8...].elementsEqual(Array("WEBP".utf8)) {
      return "image/webp"
    }
    return nil
  }

  /// Returns a JPEG of at most 256 × 256 pixels, or nil if `vipsthumbnail` is not installed.
  ///
  /// - Throws: `Failure` if the picture cannot be decoded within the limits.
  func thumbnail() async throws -> Data? {
    guard let program = Self.find("vipsthumbnail"), let header = Self.find("vipsheader") else { return nil }
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-todo-\(UUID())")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    defer { Self.remove(folder) }
    try data.write(to: folder.appendingPathComponent("photo"))
    let size = try await Self.run("\(header) -f width photo && \(header) -f height photo", in: folder)
      .split(separator: "\n").compactMap { Int($0) }
    guard size.count == 2 else { throw Self.broken }
    guard size[0].multipliedReportingOverflow(by: size[1]).partialValue <= Self.maxPixels else {
      throw Failure(.data, "tooLarge", "the photo has \(size[0]) × \(size[1]) pixels; the limit is 100 megapixels")
    }
    _ = try await Self.run("exec \(program) --size '256x256>' -o 'small.jpg[Q=82,strip]' photo", in: folder)
    return try Data(contentsOf: folder.appendingPathComponent("small.jpg"))
  }

  private static func remove(_ folder: URL) {
    do { try FileManager.default.removeItem(at: folder) } catch {
      Output.note("zdc-todo: \(folder.path) with a photo was not removed: \(error)")
    }
  }

  private static let broken = Failure(.data, "brokenPicture", "the picture is damaged, or too large to decode")

  private static func find(_ program: String) -> String? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
    return folders.map { "\($0)/\(program)" }.first(where: FileManager.default.isExecutableFile)
  }

  /// One thread, and only the decoders that vips considers safe for untrusted pictures.
  private static let environment = [
    "PATH": "/usr/bin:/bin", "VIPS_CONCURRENCY": "1", "VIPS_BLOCK_UNTRUSTED": "1", "MALLOC_ARENA_MAX": "1",
  ]

  /// Runs a command with at most 1 GB of memory, 10 seconds and 1 MB of output files.
  private static func run(_ command: String, in folder: URL) async throws -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = [
      "-c", "ulimit -v 1000000; ulimit -t \(seconds); ulimit -f 2048; ulimit -c 0; exec 2>warnings; \(command)",
    ]
    process.currentDirectoryURL = folder
    process.environment = environment.merging(["HOME": folder.path]) { $1 }
    (process.standardInput, process.standardOutput) = (FileHandle.nullDevice, output)
    try await exit(of: process)
    // For a picture that is cut off, the programs only warn, and fill the rest with grey.
    let warnings = try String(contentsOf: folder.appendingPathComponent("warnings"), encoding: .utf8).lowercased()
    let isComplete = !warnings.contains("not enough") && !warnings.contains("premature end")
    guard process.terminationReason == .exit, process.terminationStatus == 0, isComplete else { throw broken }
    return String(decoding: output.fileHandleForReading.readDataToEndOfFile().prefix(100), as: UTF8.self)
  }

  private static func exit(of process: Process) async throws {
    let (ended, end) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in end.finish() }
    try process.run()
    let limit = _Concurrency.Task {
      try await _Concurrency.Task.sleep(for: .seconds(seconds))
      process.terminate()
    }
    for await _ in ended {}
    limit.cancel()
  }
}
