import ArgumentParser
import Dispatch
import Foundation
import Synchronization
import ZDCProtocol
import ZDCTreesystem
import ZeroDarkCloud

/// One device's work in a separate process, so that its memory can be measured.
struct Worker: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Part of a measurement that runs in a separate process.", shouldDisplay: false)

  enum Job: String, ExpressibleByArgument {
    /// Creates an account and nothing else.
    case start
    /// Creates a node every 100 ms, and prints how many the server has acknowledged.
    case steady
    case push, pull
    case put, get
    /// A hostile account: pushes until it is terminated; reads everything with one fresh device after another.
    case flood, churn
    /// A host without an account: wrong logins and all other requests that need none.
    case strangers
  }

  struct Result: Codable {
    var seconds: Double = 0
    var words: [String] = []
    /// MiB.
    var peak: Double = 0
  }

  @Argument var job: Job
  @Option var server: String
  @Option var folder: String
  @Option var nodes = 1
  /// The file that `put` sends and `get` writes.
  @Option var file = ""
  /// A file, because every local user can read the arguments.
  @Option var wordsFile = ""

  func run() async throws {
    var result = try await work()
    result.peak = try ProcessMemory(ProcessInfo.processInfo.processIdentifier).peak
    FileHandle.standardOutput.write(try JSONEncoder().encode(result))
  }

  private func work() async throws -> Result {
    if [.flood, .churn, .strangers].contains(job) { Self.endAfterFiveMinutes() }
    if job == .strangers { try await Strangers(server: server).run() }
    let device = try device()
    var result = Result()
    switch job {
    case .flood, .churn, .strangers: try await attack(device)
    case .start: result.words = try await device.createAccount().words
    case .steady: try await steady(device)
    case .push: result = try await push(device)
    case .put: result = try await put(device)
    case .pull: result.seconds = try await seconds { try await pull(device) }.0
    case .get: result.seconds = try await get(device)
    }
    try await device.close()
    return result
  }

  private func device() throws -> Device {
    guard let server = URL(string: server) else { throw BenchError("no address") }
    let app = job == .put ? BenchApp(content: ZDCData(cleartextFileURL: URL(fileURLWithPath: file))) : nil
    return try Device(server: server, folder: URL(fileURLWithPath: folder), app: app)
  }

  /// Creates nodes until standard input ends, then waits for the answers to all of them. A line is the number of answers so
  /// far.
  private func steady(_ device: Device) async throws {
    let (user, _) = try await device.createAccount()
    let isEnding = Self.endOfInput()
    let start = ContinuousClock.now
    var (created, answered) = (0, 0)
    while answered < created || !isEnding.isSet {
      if ContinuousClock.now >= start + .milliseconds(100 * created), !isEnding.isSet {
        try await device.create(["node \(created)"], user: user)
        created += 1
      }
      let count = device.app.pushed.count
      if count > answered { FileHandle.standardOutput.write(Data("\(count)\n".utf8)) }
      answered = count
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private static func endOfInput() -> Flag {
    let flag = Flag()
    Thread.detachNewThread {
      while !FileHandle.standardInput.availableData.isEmpty {}
      flag.set()
    }
    return flag
  }

  private final class Flag: Sendable {
    private let value = Mutex(false)
    var isSet: Bool { value.withLock { $0 } }
    func set() { value.withLock { $0 = true } }
  }

  private func push(_ device: Device) async throws -> Result {
    let (user, words) = try await device.createAccount()
    let (time, _) = try await seconds {
      // One transaction for each ten thousand nodes, as an import would do.
      for start in stride(from: 0, to: nodes, by: Bench.nodes) {
        try await device.create((start..<min(start + Bench.nodes, nodes)).map { "node \($0)" }, user: user)
      }
      try await device.app.pushed.wait(until: nodes, seconds: 300)
      try await device.settle()
    }
    return Result(seconds: time, words: words)
  }

  /// Ends the attacker after five minutes. If the measurement is killed, nothing else would end it.
  private static func endAfterFiveMinutes() {
    DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(300)) { Foundation.exit(0) }
  }

  /// Runs until the process is terminated.
  private func attack(_ device: Device) async throws {
    let (user, words) = try await device.createAccount()
    if job == .churn { try await churn(device, user, words) }
    var round = 0
    while true {
      try await device.create((0..<5_000).map { "\(round) \($0)" }, user: user)
      round += 1
      try await device.app.pushed.wait(until: round * 5_000, seconds: 600)
    }
  }

  /// Logs in with one device after another; each reads the whole tree.
  private func churn(_ first: Device, _ user: String, _ words: [String]) async throws -> Never {
    try await first.create((0..<5_000).map { "node \($0)" }, user: user)
    try await first.app.pushed.wait(until: 5_000, seconds: 600)
    while true {
      let folder = URL(fileURLWithPath: folder).appendingPathComponent(UUID().uuidString)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      guard let url = URL(string: server) else { throw BenchError("no address") }
      let device = try Device(server: url, folder: folder)
      try await device.login(words)
      try await device.app.discovered.wait(until: 5_000, seconds: 600)
      try await device.downloadAll(5_000)
      try await device.close()
    }
  }

  private func put(_ device: Device) async throws -> Result {
    let (user, words) = try await device.createAccount()
    let (time, _) = try await seconds {
      try await device.create(["large"], user: user)
      try await device.app.pushed.wait(until: 1, seconds: 300)
      try await device.settle()
    }
    return Result(seconds: time, words: words)
  }

  private func login(_ device: Device) async throws {
    let words = try String(contentsOf: URL(fileURLWithPath: wordsFile), encoding: .utf8)
    try await device.login(words.split(separator: " ").map(String.init))
    try await device.app.discovered.wait(until: nodes, seconds: 300)
    try await device.settle()
  }

  private func pull(_ device: Device) async throws {
    try await login(device)
    try await device.downloadAll(nodes)
  }

  private func get(_ device: Device) async throws -> Double {
    try await login(device)
    guard let node = device.app.discoveredNodes.first, let downloads = device.zdc.downloadManager else {
      throw BenchError("nothing to get")
    }
    return try await seconds {
      _ = try await downloads.downloadNodeData(node, toFile: URL(fileURLWithPath: file))
    }.0
  }
}

extension Worker {
  /// Runs a worker of this program to completion.
  static func run(
    _ job: Job, _ server: ServerProcess, folder: URL, nodes: Int = 1, file: URL? = nil, words: [String]? = nil
  ) throws -> Result {
    var arguments = [
      "worker", job.rawValue, "--server", server.url.absoluteString, "--folder", folder.path, "--nodes", "\(nodes)",
    ]
    if let file { arguments += ["--file", file.path] }
    if let words {
      let url = folder.appendingPathComponent("words.txt")
      try Data(words.joined(separator: " ").utf8).write(to: url)
      arguments += ["--words-file", url.path]
    }
    return try JSONDecoder().decode(Result.self, from: try Program("zdc-bench").run(arguments, limit: 400))
  }
}

/// Sends requests of a host without an account, as many as the server answers.
private struct Strangers {
  let server: String

  func run() async throws -> Never {
    let transport = try AsyncHTTPTransport(serverURL: server)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<64 {
        group.addTask { while true { await request(number, transport) } }
      }
    }
    throw BenchError("strangers do not end")
  }

  private func request(_ number: Int, _ transport: AsyncHTTPTransport) async {
    let noise = (0..<32).map { _ in UInt8.random(in: 0...255) }
    let requests = [
      TransportRequest(.post, Routes.challenge, body: .bytes(Array(#"{"lookupID":"\(ZBase32.encode(noise))"}"#.utf8))),
      TransportRequest(.post, Routes.login, body: .bytes(Array(repeating: 0x5b, count: 4_096))),
      TransportRequest(.post, Routes.accounts, body: .bytes(Array(repeating: 0x20, count: 60_000))),
      TransportRequest(.get, Routes.events), TransportRequest(.get, Routes.path(Routes.chain, ZBase32.encode(noise))),
    ]
    do {
      let answer = try await transport.send(requests[number % requests.count])
      _ = try await answer.body.collect(upTo: 1 << 20)
    } catch {
      // Refused or cut: send the next one.
      await Task.yield()
    }
  }
}
