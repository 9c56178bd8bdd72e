import Foundation
import Synchronization

@testable import ZDCServerPostgres

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A PostgreSQL server in a temporary folder: one for the tests of one process, which starts with the first test that asks
/// for a database, or one of a test that crashes it.
///
/// A shell is its parent. It stops the server when the test process, or this object's life, ends, however that ends: then
/// its standard input is closed.
final class TestPostgres: Sendable {
  private let folder: String
  /// The other end of the shell's input. Never written to.
  private let input: Pipe
  private let lastDatabase = Mutex(0)

  private static let started = Result { try TestPostgres(name: "") }
  private static let count = Mutex(0)

  /// - Throws: ``NotStarted``, so that a machine without PostgreSQL fails the tests.
  static func shared() throws -> TestPostgres { try started.get() }

  /// Starts a server of the caller's own.
  static func another() throws -> TestPostgres {
    let number = count.withLock { count in
      count += 1
      return count
    }
    return try TestPostgres(name: "-\(number)")
  }

  struct NotStarted: Error, CustomStringConvertible {
    var description: String
  }

  private init(name: String) throws {
    let programs = try Self.programs()
    folder = NSTemporaryDirectory() + "/zdc-pg-\(getpid())\(name)"
    input = Pipe()
    _ = fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
    let shell = Process()
    shell.executableURL = URL(fileURLWithPath: "/bin/sh")
    shell.arguments = ["-c", Self.script, programs, folder]
    shell.standardInput = input
    let output = Pipe()
    shell.standardOutput = output
    try shell.run()
    var text = ""
    while !text.contains("\n") {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { break }
      text += String(decoding: more, as: UTF8.self)
    }
    guard text.hasPrefix("ready") else {
      throw NotStarted(description: "PostgreSQL did not start; its log is \(folder)/log")
    }
  }

  /// Arguments: the folder of PostgreSQL's programs, and the data folder. PostgreSQL refuses to run as root.
  private static let script = """
    mkdir -m 700 "$1" || exit 1
    as() { "$@"; }
    if [ "$(id -u)" = 0 ]; then
      chown postgres "$1"
      as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
    fi
    cd "$1" || exit 1
    exec 2>>"$1/log"
    as "$0/initdb" -D "$1/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >&2 || exit 1
    as "$0/postgres" -D "$1/data" -k "$1" -c listen_addresses= -c fsync=off -c full_page_writes=off \\
      -c max_connections=400 -c shared_buffers=64MB >&2 </dev/null &
    server=$!
    trap '' INT TERM
    for attempt in $(seq 600); do
      as "$0/pg_isready" -q -h "$1" && break
      kill -0 $server || exit 1
      sleep 0.1
    done
    echo ready
    exec >/dev/null
    cat
    # Not $server: a shell's background processes ignore the signal.
    kill -QUIT "$(head -n 1 "$1/data/postmaster.pid")"
    wait $server
    cd / && rm -rf "$1"
    """

  /// Returns the folder of the newest version that is installed.
  private static func programs() throws -> String {
    let versions = "/usr/lib/postgresql"
    let debian = ((try? FileManager.default.contentsOfDirectory(atPath: versions)) ?? [])
      .sorted { (Int($0) ?? 0) > (Int($1) ?? 0) }.map { "\(versions)/\($0)/bin" }
    let others = ["/opt/homebrew/opt/postgresql@17/bin", "/usr/local/pgsql/bin", "/usr/bin"]
    let found = (debian + others).first { FileManager.default.isExecutableFile(atPath: $0 + "/initdb") }
    guard let found else {
      throw NotStarted(description: "PostgreSQL is not installed; Scripts/setup installs the package postgresql")
    }
    return found
  }

  func url(of database: String) -> String { "postgres://postgres@/\(database)?host=\(folder)" }

  /// Creates an empty database; returns its URL.
  func newDatabase() throws -> String {
    let number = lastDatabase.withLock { last in
      last += 1
      return last
    }
    try PostgresConnection(url(of: "postgres")).run("CREATE DATABASE zdc\(number)")
    return url(of: "zdc\(number)")
  }

  /// From the next connection to the database on, the log has the plan of each statement, with the rows of its steps.
  func logPlans(of url: String) throws {
    guard let name = Self.name(of: url) else { return }
    let db = try PostgresConnection(self.url(of: "postgres"))
    let settings = ["log_min_duration = 0", "log_analyze = on", "log_timing = off", "log_format = json"]
    try db.run("ALTER DATABASE \(name) SET session_preload_libraries = 'auto_explain'")
    for setting in settings { try db.run("ALTER DATABASE \(name) SET auto_explain.\(setting)") }
  }

  func log() throws -> String { try String(contentsOfFile: folder + "/log", encoding: .utf8) }

  /// Ends the connections to the database, then removes it.
  func remove(_ url: String) throws {
    guard let name = Self.name(of: url) else { return }
    try PostgresConnection(self.url(of: "postgres")).run("DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
  }

  private static func name(of url: String) -> Substring? { url.split(separator: "?").first?.split(separator: "/").last }
}
