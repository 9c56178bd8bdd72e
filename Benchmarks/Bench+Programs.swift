import Dispatch
import Foundation
import ZeroDarkCloud

// Complete runs of programs.

extension Bench {
  func serverStart() async throws -> [Figure] {
    var times: [Double] = []
    for _ in 0..<max(runs, 3) {
      let folder = try newFolder()
      let (time, server) = try await seconds { try await ServerProcess(folder: folder) }
      times.append(time)
      server.stop()
    }
    return [Figure("start-server", times, beside: try programYardstick("zdc-server", ["version"]))]
  }

  /// Measures `zdc ls` on a profile that has logged in and synced.
  func list() async throws -> [Figure] {
    let home = try newFolder()
    let server = try await ServerProcess(folder: newFolder())
    let device = try Device(server: server.url, folder: newFolder())
    let (user, words) = try await device.createAccount()
    try await device.create((0..<Self.nodes).map { "node \($0)" }, user: user)
    try await device.app.pushed.wait(until: Self.nodes)
    try await device.close()
    let wordsFile = home.appendingPathComponent("words.txt")
    try Data(words.joined(separator: " ").utf8).write(to: wordsFile)
    let zdc = Program("zdc", home: home)
    _ = try zdc.run([
      "account", "login", "--server", url(server), "--words-file", wordsFile.path,
    ])
    _ = try zdc.run(["sync"])
    var times: [Double] = []
    for _ in 0..<max(runs, 3) {
      let (time, output) = try secondsAtOnce { try zdc.run(["ls"]) }
      guard output.split(separator: UInt8(ascii: "\n")).count >= Self.nodes else {
        throw BenchError("zdc ls lists too little")
      }
      times.append(time)
    }
    return [Figure("ls-10k", times, beside: try programYardstick("zdc", ["--version"]))]
  }

  private func url(_ server: ServerProcess) -> String {
    server.url.absoluteString
  }
}

/// A program of this build that runs to completion.
struct Program {
  private let name: String
  private let home: URL?

  init(_ name: String, home: URL? = nil) {
    self.name = name
    self.home = home
  }

  /// - Parameter limit: seconds after which the program is terminated.
  /// - Returns: its standard output.
  func run(_ arguments: [String], limit: Int = 120) throws -> Data {
    let (process, output) = try start(arguments)
    let deadline = DispatchWorkItem { process.terminate() }
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(limit), execute: deadline)
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    deadline.cancel()
    guard process.terminationStatus == 0 else { throw BenchError("\(name) \(arguments[0]) failed") }
    return bytes
  }

  func start(_ arguments: [String]) throws -> (Process, Pipe) {
    let process = Process()
    process.executableURL = Bench.program(name)
    process.arguments = arguments
    if let home {
      process.environment = ["HOME": home.path, "PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""]
    }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    return (process, output)
  }
}
