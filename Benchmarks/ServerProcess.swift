import Foundation
import ZeroDarkCloud

/// `zdc-server` of the same build, in its own process with its own folder; or a service that runs already, whose URL is
/// in `ZDC_BENCH_SERVER`.
final class ServerProcess {
  let url: URL
  let folder: URL
  private let process: Process?
  private let http: AsyncHTTPTransport

  /// Starts the server and returns after its first answer.
  init(folder: URL) async throws {
    self.folder = folder
    if let given = ProcessInfo.processInfo.environment["ZDC_BENCH_SERVER"].flatMap({ URL(string: $0) }) {
      (process, url) = (nil, given)
    } else {
      (process, url) = try Self.start(folder)
    }
    http = try AsyncHTTPTransport(serverURL: url.absoluteString)
    _ = try await get("/healthz")
  }

  private static func start(_ folder: URL) throws -> (Process, URL) {
    let process = Process()
    process.executableURL = Bench.program("zdc-server")
    process.arguments = ["serve", "--data", folder.path, "--listen", "127.0.0.1:0"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    return (process, try address(output.fileHandleForReading))
  }

  /// Reads the address that the server prints when it is ready.
  private static func address(_ output: FileHandle) throws -> URL {
    var text = ""
    while !text.contains("\n") {
      let bytes = output.availableData
      guard !bytes.isEmpty else { throw BenchError("zdc-server did not start") }
      text += String(decoding: bytes, as: UTF8.self)
    }
    guard let url = text.split(whereSeparator: \.isWhitespace).last.flatMap({ URL(string: String($0)) }) else {
      throw BenchError("zdc-server said something else than its address")
    }
    return url
  }

  func get(_ path: String) async throws -> String {
    let answer = try await http.send(TransportRequest(.get, path))
    guard answer.status == 200 else { throw BenchError("\(path) gave \(answer.status)") }
    return String(decoding: try await answer.body.collect(upTo: 1 << 20), as: UTF8.self)
  }

  /// The number of bytes in request bodies so far.
  func receivedBytes() async throws -> Double {
    try await counter("zdc_received_bytes_total")
  }

  func commitCount() async throws -> Double {
    try await counter("zdc_commits_total")
  }

  private func counter(_ name: String) async throws -> Double {
    let lines = try await get("/metrics").split(separator: "\n")
    let line = lines.first { $0.hasPrefix(name + " ") }
    guard let value = line?.split(separator: " ").last.flatMap({ Double(String($0)) }) else {
      throw BenchError("the server does not count \(name)")
    }
    return value
  }

  var memory: ProcessMemory { ProcessMemory(process?.processIdentifier) }

  func stop() {
    guard let process, process.isRunning else { return }
    process.terminate()
    process.waitUntilExit()
  }

  deinit { stop() }
}

/// A process's resident memory in MiB.
struct ProcessMemory {
  private let process: Int32?

  /// - Parameter process: nil for a service of several processes.
  init(_ process: Int32?) {
    self.process = process
  }

  var peak: Double {
    get throws { try value("VmHWM") }
  }

  /// - Returns: NaN for a service, and where there is no /proc.
  private func value(_ name: String) throws -> Double {
    guard let process, FileManager.default.fileExists(atPath: "/proc/self/status") else { return .nan }
    let status = try String(contentsOf: URL(fileURLWithPath: "/proc/\(process)/status"), encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
    guard let kibibytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Double($0) }) else {
      throw BenchError("no \(name) in /proc")
    }
    return kibibytes / 1_024
  }
}

/// Returns the number of bytes in all files of a folder.
func diskBytes(_ folder: URL) throws -> Double {
  guard let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: [.fileSizeKey]) else {
    throw BenchError("cannot list \(folder.path)")
  }
  var sum = 0
  for case let file as URL in files { sum += try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0 }
  return Double(sum)
}
