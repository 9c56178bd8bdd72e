import Foundation
import Testing

/// Runs one script in a dedicated folder, with a dedicated server and the real programs of this build.
final class ScriptRun: Sendable {
  private let folder: URL
  private let environment: [String: String]
  private let server: ChildProcess

  private init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-test-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var environment = Programs.environment(home: folder)
    environment["T"] = folder.path
    environment["TOOLS"] = Script.folder.appendingPathComponent("scripts/tools").path
    self.environment = environment
    try Self.prelude.write(to: folder.appendingPathComponent(".prelude"), atomically: true, encoding: .utf8)
    server = try ChildProcess(
      Programs.server,
      ["serve", "--data", folder.appendingPathComponent("server").path, "--listen", "127.0.0.1:0"],
      environment: environment, output: folder.appendingPathComponent("server.out"),
      errors: folder.appendingPathComponent("server.log"))
  }

  /// Starts a server, passes the run to `body`, and always ends everything that was started.
  static func with(_ body: (ScriptRun) async throws -> Void) async throws {
    let run = try ScriptRun()
    do {
      try await run.awaitServer()
      try await body(run)
    } catch {
      await run.finish()
      throw error
    }
    await run.finish()
  }

  private func finish() async {
    for name in [".background", ".first"] {
      let file = folder.appendingPathComponent(name)
      // Not our child to wait for: its shell has ended.
      if let text = try? String(contentsOf: file, encoding: .utf8), let pid = pid_t(text.dropLast()) {
        kill(pid, SIGTERM)
      }
    }
    await server.stop()
    _ = try? FileManager.default.removeItem(at: folder)
  }

  private static let prelude = #"""
    if [ -e .url ]; then URL=$(cat .url); fi
    if [ -e own.proxy ]; then OWN=http://127.0.0.1:$(cat own.proxy); fi
    a() { XDG_CONFIG_HOME=$T/a/config XDG_DATA_HOME=$T/a/data zdc "$@"; }
    b() { XDG_CONFIG_HOME=$T/b/config XDG_DATA_HOME=$T/b/data zdc "$@"; }
    # background DEVICE ARGUMENT…: zdc runs beside the script; its output is in background.log, which is empty at once, so that
    # `await` does not find the output of an earlier one
    background() {
      device=$1; shift
      : >background.log
      XDG_CONFIG_HOME=$T/$device/config XDG_DATA_HOME=$T/$device/data zdc "$@" </dev/null >background.log 2>&1 &
      echo $! >.background
    }
    # await FILE TEXT: until the file has it; gives up after a minute
    await() { for i in $(seq 1200); do grep -qF -- "$2" "$1" 2>/dev/null && return; sleep 0.05; done; cat "$1"; return 1; }
    # behind_proxy: starts another server behind tools/proxy.py, which obeys the file `rules`; sets $OWN to its address
    behind_proxy() {
      python3 "$TOOLS/proxy.py" own.proxy own.port rules </dev/null >proxy.log 2>&1 &
      echo $! >.first; await own.proxy ""
      zdc-server serve --data data --listen 127.0.0.1:0 --origin http://127.0.0.1:$(cat own.proxy) \
        </dev/null >own.out 2>own.log &
      echo $! >.background; await own.out http:
      head -1 own.out | sed 's/.*:\([0-9]*\)[^0-9]*$/\1/' | tr -d '\n' >own.port
      OWN=http://127.0.0.1:$(cat own.proxy)
    }
    # damage SQL: changes the database of the server in `data`, which has to be stopped; flip(b) is b with another middle
    damage() { python3 "$TOOLS/damage.py" data/zdc.sqlite "$1"; }
    # spooled: how many contents of pipes the device's profile keeps
    spooled() { find $1/data -path '*spool/*' -type f | wc -l; }
    # stop: ends what runs in the background
    stop() {
      kill -TERM $(cat .background)
      for i in $(seq 400); do kill -0 $(cat .background) 2>/dev/null || return 0; sleep 0.05; done
      return 1
    }

    """#

  // MARK: Running

  private func awaitServer() async throws {
    let step = Script.Step(
      line: 0, command: "await server.out http: && grep -o 'http://[^ ]*' server.out | tr -d '\\n' >.url")
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
    let child = try ChildProcess(
      "/bin/sh", ["-c", "cd \"$T\" && . ./.prelude\n\(step.command)"], environment: environment, input: names[0],
      output: names[1], errors: names[2])
    let status = await child.wait()
    return Outcome(status: status, output: try Self.lines(names[1]), errors: try Self.lines(names[2]))
  }

  private static func lines(_ url: URL) throws -> [String] {
    let text = String(decoding: try Data(contentsOf: url), as: UTF8.self)
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    return lines
  }
}
