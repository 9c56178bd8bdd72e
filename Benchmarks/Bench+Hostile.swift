import Foundation
import ZeroDarkCloud

// Honest devices next to a hostile account and an anonymous host.

extension Bench {
  /// Fifty devices edit once a second: first alone, then under attack. An account pushes and pulls as much as it can,
  /// and a host without an account sends whatever it can. The attackers run on idle processor time only: real ones use
  /// their own machines, and the row measures the work that they cause on the server.
  ///
  /// The two are measured in turns, and the figure is the median of the turns: a single pause of the machine is the
  /// 99th percentile of its turn.
  func hostileLoad() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let pairs = try await makePairs(server, count: scale.honest / 2)
    var (quiet, attacked): ([Double], [Double]) = ([], [])
    for turn in 0..<Self.turns {
      quiet.append(percentile(try await editTimes(pairs, edits: scale.edits, round: 2 * turn), 99))
      attacked.append(percentile(try await attackedTimes(server, pairs, round: 2 * turn + 1), 99))
      note("p99 quiet \(quiet[turn]) ms, beside the attack \(attacked[turn]) ms")
    }
    for pair in pairs { try await pair.close() }
    return [Figure("hostile-50", attacked, beside: Yardstick(name: "the same, quiet", value: median(quiet)))]
  }

  private static let turns = 3

  private func attackedTimes(_ server: ServerProcess, _ pairs: [DevicePair], round: Int) async throws -> [Double] {
    let attack = try Attack(server, folders: [newFolder(), newFolder(), newFolder()])
    defer { attack.stop() }
    try await attack.begun(server)
    return try await editTimes(pairs, edits: scale.edits, round: round)
  }
}

/// The attackers' processes.
private final class Attack {
  private var processes: [Process] = []

  init(_ server: ServerProcess, folders: [URL]) throws {
    for (job, folder) in zip([Worker.Job.flood, .churn, .strangers], folders) {
      processes.append(try Self.start(job, server, folder))
    }
  }

  private static func start(_ job: Worker.Job, _ server: ServerProcess, _ folder: URL) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments =
      idle + [Bench.program("zdc-bench").path, "worker", job.rawValue]
      + ["--server", server.url.absoluteString, "--folder", folder.path]
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    return process
  }

  #if os(Linux)
    // Not with `nice`, which Dispatch changes for its own threads.
    private static let idle = ["chrt", "--idle", "0"]
  #else
    private static let idle = ["nice", "-n", "20"]
  #endif

  /// Waits until the attackers' commits arrive.
  func begun(_ server: ServerProcess) async throws {
    let before = try await server.commitCount()
    for _ in 0..<600 {
      if try await server.commitCount() > before + 20 { return }
      guard processes.allSatisfy(\.isRunning) else { throw BenchError("an attacker ended unexpectedly") }
      try await Task.sleep(for: .milliseconds(100))
    }
    throw BenchError("the attack does not begin")
  }

  func stop() {
    for process in processes where process.isRunning {
      process.terminate()
      process.waitUntilExit()
    }
    processes = []
  }

  deinit { stop() }
}
