internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Failures of the file system, with their exit code. The one place that reads `errno`.
package enum FileFailure {
  /// What the last call failed with, for a path that the user may be shown.
  package static func error(_ path: String, reading: Bool = false, number: Int32 = errno) -> CommandError {
    let shown = ShownName.text(path)
    let reason = String(cString: strerror(number))
    switch number {
    case ENOENT where reading:
      return CommandError(.noInput, "noSuchFile", "\(shown): \(reason)")
    case EACCES, EPERM:
      return CommandError(.noPermission, "noPermission", "\(shown): \(reason)", hint: "check its owner and permissions")
    case ENOSPC, EDQUOT:
      return CommandError(.cannotCreate, "diskFull", "\(shown): \(reason)")
    case EROFS:
      return CommandError(.cannotCreate, "readOnly", "\(shown): \(reason)")
    default:
      return CommandError(reading ? .noInput : .cannotCreate, "fileFailure", "\(shown): \(reason)")
    }
  }
}
