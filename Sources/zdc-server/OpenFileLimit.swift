import Foundation

/// How many files the process may have open, connections included. The usual soft limit is 1,024.
enum OpenFileLimit {
  /// More connections than this take more memory than one machine of this size has.
  private static let mostConnections = 16_384

  /// Raises the soft limit as far as the system allows; returns what is in force, nil if it is unknown.
  static func raise() -> Int? {
    var limit = rlimit()
    #if canImport(Glibc)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    guard getrlimit(resource, &limit) == 0 else { return nil }
    // Some systems refuse more than this, whatever the hard limit says.
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

  /// A quarter is left for contents, the database and answers on their way.
  static func connections(of files: Int) -> Int { max(16, min(files - files / 4, mostConnections)) }
}
