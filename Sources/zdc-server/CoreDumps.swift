import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Disables core dumps: one of this process would contain session tokens and names of users.
enum CoreDumps {
  /// Ignores failures: where a limit cannot be lowered, the system writes no dumps that others may read.
  static func disable() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    #if canImport(Glibc)
      setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    #else
      setrlimit(RLIMIT_CORE, &none)
    #endif
    #if os(Linux)
      // The limit does not apply where dumps are piped to a program: leave nothing in them.
      guard let filter = fopen("/proc/self/coredump_filter", "w") else { return }
      fputs("0", filter)
      fclose(filter)
    #endif
  }
}
