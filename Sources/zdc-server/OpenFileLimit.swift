import Foundation

/// The number of files that the process may have open, connections included. The usual soft limit is 1,024.
enum OpenFileLimit {
  /// Each connection costs memory, however many files the system allows.
  private static let mostConnections = 16_384

  /// Raises the soft limit as far as the system allows; returns the limit in force, or nil if it is unknown.
  static func raise() -> Int? {
    var limit = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    guard getrlimit(resource, &limit) == 0 else { return nil }
    // Some systems refuse more than this, regardless of the hard limit.
    for wanted in [limit.rlim_max, min(limit.rlim_max, 65_536), min(limit.rlim_max, 10_240)]
    where wanted > limit.rlim_cur {
      var raised = limit
      raised.rlim_cur = wanted
      guard setrlimit(resource, &raised) == 0 else { continue }
      limit = raised
      break
    }
    return Int(clamping: limit.rlim_cur)
  }

  /// Returns the number of connections to accept. A quarter of the files is left for content and the database.
  static func connections(of files: Int) -> Int { max(16, min(files - files / 4, mostConnections)) }
}
