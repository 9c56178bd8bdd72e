import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A started child process that must be waited for.
///
/// NB: Foundation's Process does not work here. On Linux it considers a program running until all of its background
/// processes have ended.
struct ChildProcess: Sendable {
  let pid: pid_t

  /// - Parameters:
  ///   - input: nil for no input.
  ///   - output, errors: files that are created or truncated.
  init(
    _ program: String, _ arguments: [String], environment: [String: String], input: URL? = nil, output: URL, errors: URL
  ) throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, input?.path ?? "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, errors.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Threads of the pool block all signals, and a child inherits that mask: its shell would wait forever.
    var noSignals = sigset_t()
    sigemptyset(&noSignals)
    posix_spawnattr_setsigmask(&attributes, &noSignals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var pid: pid_t = 0
    let status = Self.withStrings([program] + arguments) { arguments in
      Self.withStrings(environment.map { "\($0)=\($1)" }) { environment in
        posix_spawn(&pid, program, &actions, &attributes, arguments, environment)
      }
    }
    guard status == 0 else { throw POSIXError(POSIXErrorCode(rawValue: status) ?? .EINVAL) }
    self.pid = pid
  }

  private static func withStrings<T>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> T
  ) -> T {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
  }

  /// Waits for the process to end and returns its exit code, or 128 plus the number of the signal that ended it.
  ///
  /// - Parameter ended: called while the process ID is still reserved for this process.
  func wait(ended: (@Sendable () -> Void)? = nil) async -> Int32 {
    await withCheckedContinuation { done in
      Thread.detachNewThread {
        var info = siginfo_t()
        while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
        ended?()
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        done.resume(returning: status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F))
      }
    }
  }

  /// Ends the process as a service manager would, and waits for it.
  func stop() async {
    kill(pid, SIGTERM)
    _ = await wait()
  }
}
