import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A core dump of this process would hold keys and cleartext.
enum CoreDumps {
  /// Failures are left alone: where a limit cannot be lowered, the system writes no dumps that others may read.
  static func disable() {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    #if canImport(Glibc)
      setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
    #else
      setrlimit(RLIMIT_CORE, &none)
    #endif
    #if os(Linux)
      // The limit does not hold where dumps go to a program: leave nothing in them.
      guard let filter = fopen("/proc/self/coredump_filter", "w") else { return }
      fputs("0", filter)
      fclose(filter)
    #endif
  }
}
