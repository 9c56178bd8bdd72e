import Foundation
import Testing

/// One script in a folder of its own, with a server of its own: the real programs of this build.
final class ScriptRun {
  private let folder: URL
  private let shell: [String: String]
  private var background: [Process] = []

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ZDC_") && !$0.key.hasPrefix("XDG_") }
    environment["PATH"] = "\(Self.programs.path):\(environment["PATH"] ?? "/usr/bin:/bin")"
    environment["HOME"] = folder.path
    environment["T"] = folder.path
    environment["LC_ALL"] = "C.UTF-8"
    shell = environment
    try Self.prelude.write(to: folder.appendingPathComponent(".prelude"), atomically: true, encoding: .utf8)
  }

  deinit {
    let pid = folder.appendingPathComponent(".background")
    if let text = try? String(contentsOf: pid, encoding: .utf8), let number = pid_t(text.dropLast()) { kill(number, SIGTERM) }
    for process in background where process.isRunning { process.terminate() }
    for process in background { process.waitUntilExit() }
    _ = try? FileManager.default.removeItem(at: folder)
  }

  /// Where `swift build` put the programs: beside the tests.
  private static let programs: URL = {
    #if os(Linux)
      let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
      return URL(fileURLWithPath: own).deletingLastPathComponent()
    #else
      let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
      return (bundle?.bundleURL ?? Bundle.main.bundleURL).deletingLastPathComponent()
    #endif
  }()

  private static let prelude = """
    if [ -e .url ]; then URL=$(cat .url); fi
    a() { XDG_CONFIG_HOME=$T/a/config XDG_DATA_HOME=$T/a/data zdc "$@"; }
    b() { XDG_CONFIG_HOME=$T/b/config XDG_DATA_HOME=$T/b/data zdc "$@"; }
    # background DEVICE ARGUMENT…: zdc goes on beside the script; its output is in background.log
    background() {
      device=$1; shift
      XDG_CONFIG_HOME=$T/$device/config XDG_DATA_HOME=$T/$device/data zdc "$@" </dev/null >background.log 2>&1 &
      echo $! >.background
    }
    # await FILE TEXT: until the file has it; gives up after a minute
    await() { for i in $(seq 1200); do grep -qF -- "$2" "$1" 2>/dev/null && return; sleep 0.05; done; cat "$1"; return 1; }
    # stop: ends what runs in the background
    stop() {
      kill -TERM $(cat .background)
      for i in $(seq 400); do kill -0 $(cat .background) 2>/dev/null || return 0; sleep 0.05; done
      return 1
    }

    """

  // MARK: Running

  func startServer() async throws {
    let process = Process()
    process.executableURL = Self.programs.appendingPathComponent("zdc-server")
    process.arguments = ["serve", "--data", folder.appendingPathComponent("server").path, "--listen", "127.0.0.1:0"]
    process.environment = shell
    let log = folder.appendingPathComponent("server.out")
    process.standardOutput = try Self.file(log)
    process.standardError = try Self.file(folder.appendingPathComponent("server.log"))
    try process.run()
    background.append(process)
    let step = Script.Step(line: 0, command: "await server.out http:; grep -o 'http://[^ ]*' server.out | tr -d '\\n' >.url")
    try await #require(run(step).status == 0, "zdc-server did not start")
  }

  struct Outcome {
    var status: Int32
    var output: [String]
    var errors: [String]
  }

  func run(_ step: Script.Step) async throws -> Outcome {
    let names = ["in", "out", "err"].map { folder.appendingPathComponent(".\($0)") }
    try Data(step.input.map { $0 + "\n" }.joined().utf8).write(to: names[0])
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", ". ./.prelude\n\(step.command)"]
    process.currentDirectoryURL = folder
    process.environment = shell
    process.standardInput = try FileHandle(forReadingFrom: names[0])
    process.standardOutput = try Self.file(names[1])
    process.standardError = try Self.file(names[2])
    let status = try await withCheckedThrowingContinuation { (done: CheckedContinuation<Int32, any Error>) in
      process.terminationHandler = { done.resume(returning: $0.terminationStatus) }
      do { try process.run() } catch { done.resume(throwing: error) }
    }
    return Outcome(status: status, output: try Self.lines(names[1]), errors: try Self.lines(names[2]))
  }

  private static func file(_ url: URL) throws -> FileHandle {
    try Data().write(to: url)
    return try FileHandle(forWritingTo: url)
  }

  private static func lines(_ url: URL) throws -> [String] {
    let text = String(decoding: try Data(contentsOf: url), as: UTF8.self)
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    return lines
  }
}
