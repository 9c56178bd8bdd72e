import Foundation
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// One server and its devices, all of them real processes, with a counting proxy in front of the server.
final class ProgramWorld {
  enum Prey: String, CaseIterable, Sendable {
    case client, server
  }

  struct Outcome: Sendable {
    var status: Int32
    var output: String
    var errors: String
    var counts: Meter.Counts
    var hasStruck: Bool
  }

  let folder: URL
  let want: URL
  private let proxy: CountingProxy
  private var server: ChildProcess?
  /// Open as long as the server lives, so that it does not die of a broken pipe.
  private var serverSaid: LinePipe?
  private var runs = 0

  init() async throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-kill-\(UUID().uuidString)")
    want = folder.appendingPathComponent("want")
    try FileManager.default.createDirectory(at: want, withIntermediateDirectories: true)
    proxy = try CountingProxy()
    try await startServer()
  }

  func end() async {
    proxy.end()
    if let server { await server.stop() }
    _ = try? FileManager.default.removeItem(at: folder)
  }

  // MARK: The server

  var data: URL { folder.appendingPathComponent("server") }
  var serverLog: URL { folder.appendingPathComponent("server.log") }
  var url: String { "http://127.0.0.1:\(proxy.port)" }

  func startServer() async throws {
    let said = folder.appendingPathComponent("server.said")
    let pipe = try LinePipe(said)
    let child = try ChildProcess(
      Programs.server,
      ["serve", "--data", data.path, "--listen", "127.0.0.1:0", "--origin", url],
      environment: Programs.environment(home: folder), output: said, errors: serverLog)
    (server, serverSaid) = (child, pipe)
    let line = await pipe.firstLine()
    let port = try #require(line.split(separator: ":").last.flatMap { UInt16($0) }, "zdc-server: \(log)")
    proxy.lead(to: port)
  }

  private var log: String { (try? String(contentsOf: serverLog, encoding: .utf8)) ?? "" }

  /// Waits for the killed server to end, checks its folder, and starts the next server.
  func restartServer() async throws {
    guard let dead = server else { return }
    #expect(await dead.wait() == 128 + SIGKILL)
    server = nil
    try await checkData()
    try await startServer()
  }

  /// Does the work on a server that then loses it: its folder is restored to the state before the work.
  func forgetting(_ work: () async throws -> Void) async throws {
    let backup = folder.appendingPathComponent("backup")
    await server?.stop()
    try FileManager.default.copyItem(at: data, to: backup)
    try await startServer()
    try await work()
    await server?.stop()
    try FileManager.default.removeItem(at: data)
    try FileManager.default.moveItem(at: backup, to: data)
    try await startServer()
  }

  private func checkData() async throws {
    let (out, err) = (folder.appendingPathComponent("check.out"), folder.appendingPathComponent("check.err"))
    let child = try ChildProcess(
      Programs.server, ["check", "--data", data.path], environment: Programs.environment(home: folder), output: out,
      errors: err)
    let status = await child.wait()
    let said = "\(try text(out))\n\(try text(err))"
    try #require(status == 0, "zdc-server check: \(said)")
  }

  // MARK: Devices

  /// Runs `zdc` as a device, with a kill at a moment if one is given.
  func zdc(
    _ device: String, _ arguments: [String], killing prey: Prey? = nil, at moment: Moment? = nil
  ) async throws -> Outcome {
    runs += 1
    let (out, err) = (folder.appendingPathComponent("\(runs).out"), folder.appendingPathComponent("\(runs).err"))
    let victim = prey == .server ? Victim(server?.pid) : Victim()
    proxy.arm(moment) { victim.strike() }
    let child = try ChildProcess(
      Programs.zdc, arguments, environment: environment(device), output: out, errors: err)
    if prey == .client { victim.began(child.pid) }
    let status = await child.wait { victim.isOver() }
    // A server that was to be killed survives if the command ended first.
    proxy.disarm()
    let (counts, hasStruck) = proxy.result
    defer { for file in [out, err] { _ = try? FileManager.default.removeItem(at: file) } }
    return Outcome(
      status: status, output: try text(out), errors: try text(err), counts: counts, hasStruck: hasStruck)
  }

  /// Runs a command that must succeed.
  @discardableResult
  func mustRun(_ device: String, _ arguments: String...) async throws -> Outcome {
    let outcome = try await zdc(device, arguments)
    try #require(
      outcome.status == 0, "\(device) zdc \(arguments.joined(separator: " ")): \(outcome.status)\n\(outcome.errors)")
    return outcome
  }

  /// Runs a command that must succeed, and returns how many round trips and requests it needed.
  func cost(_ device: String, _ arguments: String...) async throws -> (roundTrips: Int, requests: Int) {
    let waves = RequestWaves()
    proxy.count(waves)
    defer { proxy.count(nil) }
    let outcome = try await zdc(device, arguments)
    try #require(outcome.status == 0, "\(outcome.errors)")
    return (waves.count, waves.requests)
  }

  func remove(_ device: String) throws {
    try FileManager.default.removeItem(at: folder.appendingPathComponent(device))
  }

  func environment(_ device: String) -> [String: String] {
    let home = folder.appendingPathComponent(device)
    var environment = Programs.environment(home: home)
    environment["XDG_CONFIG_HOME"] = home.appendingPathComponent("config").path
    environment["XDG_DATA_HOME"] = home.appendingPathComponent("data").path
    return environment
  }

  private func text(_ file: URL) throws -> String { String(decoding: try Data(contentsOf: file), as: UTF8.self) }
}

/// Waits for the first line that a child writes, without polling: its output is a named pipe.
private final class LinePipe: Sendable {
  private let reader: Int32

  init(_ path: URL) throws {
    unlink(path.path)
    guard mkfifo(path.path, 0o600) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
    reader = open(path.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard reader >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
    _ = fcntl(reader, F_SETFL, 0)
  }

  deinit { close(reader) }

  func firstLine() async -> String {
    await withCheckedContinuation { done in
      Thread.detachNewThread { [self] in
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.last != 0x0A, read(reader, &byte, 1) == 1 { line.append(byte) }
        done.resume(returning: String(decoding: line.dropLast(), as: UTF8.self))
      }
    }
  }
}
