import Foundation

/// A photo of a user, or of an attacker: nothing in it is trusted.
///
/// Only the format and the size are looked at here. `vipsthumbnail` decodes the picture in another process with limits
/// on memory, time and output, so a picture that is made to break a decoder breaks that process only.
struct Picture: Sendable {
  static let maxBytes = 25_000_000
  static let maxPixels = 100_000_000
  private static let seconds = 10

  let data: Data
  /// The type for a browser, which is told not to guess.
  let mediaType: String

  /// - Throws: `Failure` if the bytes are too many, or neither JPEG, PNG nor WebP.
  init(_ data: Data) throws {
    guard data.count <= Self.maxBytes else {
      throw Failure(.data, "tooLarge", "the photo has \(data.count / 1_000_000) MB; the limit is 25 MB")
    }
    guard let type = Self.mediaType(data.prefix(12)) else {
      throw Failure(.data, "notAPicture", "this is not a JPEG, PNG or WebP picture")
    }
    (self.data, mediaType) = (data, type)
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
    defer { try? FileManager.default.removeItem(at: folder) }
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

  private static let broken = Failure(.data, "brokenPicture", "the picture is damaged, or too large to decode")

  private static func find(_ program: String) -> String? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
    return folders.map { "\($0)/\(program)" }.first(where: FileManager.default.isExecutableFile)
  }

  /// One thread, and only decoders that are meant for untrusted pictures.
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
    // Where the end of a picture is missing, the programs only warn, and leave the rest grey.
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
