internal import Foundation

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// File-system errors with their exit codes. The only place that reads `errno`.
package enum FileFailure {
  /// Returns the error of the last call, for a path that may be shown to the user.
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
