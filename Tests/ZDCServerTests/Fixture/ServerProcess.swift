import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The real program in a separate process.
final class ServerProcess: ServerClient, @unchecked Sendable {
  // Set before the object is handed on, and not changed.
  let origin: String
  private let process: Process
  private let ended: AsyncStream<Int32>

  private init(origin: String, process: Process, ended: AsyncStream<Int32>) {
    (self.origin, self.process, self.ended) = (origin, process, ended)
  }

  /// Starts `zdc-server serve` and returns when it listens.
  ///
  /// - Parameters:
  ///   - fileBlocks: files may have that many blocks of 512 bytes.
  ///   - openFiles: how many files it may have open.
  static func serve(
    folder: String, _ arguments: [String] = [], fileBlocks: Int? = nil, openFiles: Int? = nil
  ) async throws -> ServerProcess {
    let all = ["serve", "--data", folder, "--listen", "127.0.0.1:0"] + arguments
    let limits = [fileBlocks.map { "ulimit -f \($0)" }, openFiles.map { "ulimit -n \($0)" }].compactMap { $0 }
    let (process, ended, output) = try launch(all, limits: limits)
    let line = await firstLine(of: output)
    guard let url = line.split(separator: " ").last, url.hasPrefix("http") else {
      process.terminate()
      throw Unexpected(status: -1, text: "zdc-server did not start: \(line)")
    }
    return ServerProcess(origin: String(url), process: process, ended: ended)
  }

  /// Runs the program to its end.
  ///
  /// - Parameter withErrors: Whether the output has that of standard error, too.
  static func run(_ arguments: [String], withErrors: Bool = false) async throws -> (status: Int32, output: String) {
    let (_, ended, output) = try launch(arguments, withErrors: withErrors)
    let text = await allText(of: output)
    for await status in ended { return (status, text) }
    return (-1, text)
  }

  /// Kills the program when it has printed that many lines, unless it has ended before.
  static func kill(_ arguments: [String], afterLines count: Int) async throws {
    let (process, ended, output) = try launch(arguments)
    _ = await read(output) { $0.split(separator: "\n").count >= count }
    send(SIGKILL, to: process.processIdentifier)
    for await _ in ended { return }
  }

  /// SIGTERM, and its exit status.
  func stop() async -> Int32 {
    process.terminate()
    return await wait()
  }

  var processIdentifier: Int32 { process.processIdentifier }

  func kill() async {
    Self.send(SIGKILL, to: process.processIdentifier)
    _ = await wait()
  }

  /// SIGHUP, and its exit status.
  func hangUp() async -> Int32 {
    Self.send(SIGHUP, to: process.processIdentifier)
    return await wait()
  }

  private func wait() async -> Int32 {
    for await status in ended { return status }
    return -1
  }

  private static func send(_ signal: Int32, to pid: Int32) {
    #if canImport(Glibc)
      _ = Glibc.kill(pid, signal)
    #elseif canImport(Musl)
      _ = Musl.kill(pid, signal)
    #else
      _ = Darwin.kill(pid, signal)
    #endif
  }

  private static func launch(
    _ arguments: [String], limits: [String] = [], withErrors: Bool = false
  ) throws -> (Process, AsyncStream<Int32>, Pipe) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", limits.map { $0 + "; " }.joined() + "exec \"$0\" \"$@\"", program] + arguments
    let output = Pipe()
    process.standardOutput = output
    if withErrors { process.standardError = output } else { process.standardError = FileHandle.nullDevice }
    process.standardInput = FileHandle.nullDevice
    let (ended, signal) = AsyncStream<Int32>.makeStream()
    process.terminationHandler = { process in
      signal.yield(process.terminationStatus)
      signal.finish()
    }
    try process.run()
    return (process, ended, output)
  }

  private static func firstLine(of pipe: Pipe) async -> String {
    await read(pipe) { $0.contains("\n") }.split(separator: "\n").first.map(String.init) ?? ""
  }

  private static func allText(of pipe: Pipe) async -> String { await read(pipe) { _ in false } }

  private static func read(_ pipe: Pipe, until isEnough: @escaping @Sendable (String) -> Bool) async -> String {
    let file = pipe.fileHandleForReading
    return await withCheckedContinuation { done in
      Thread.detachNewThread {
        var data = Data()
        while true {
          let more = file.availableData
          data.append(more)
          if more.isEmpty || isEnough(String(decoding: data, as: UTF8.self)) { break }
        }
        done.resume(returning: String(decoding: data, as: UTF8.self))
      }
    }
  }

  /// Where `swift build` put the program: beside the tests.
  private static let program: String = {
    #if os(Linux)
      let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
      return URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("zdc-server").path
    #else
      let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL ?? Bundle.main.bundleURL
      return bundle.deletingLastPathComponent().appendingPathComponent("zdc-server").path
    #endif
  }()
}
