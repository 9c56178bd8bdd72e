internal import Foundation

/// The names of the folders in which `get` completes files. No node can be exported under such a name, and `put` skips
/// them: they may be left from an interrupted `get`, or in use.
enum StagingName {
  static let prefix = ".zdc-get-"

  static func isOne(_ name: String) -> Bool {
    name.hasPrefix(prefix) && UUID(uuidString: String(name.dropFirst(prefix.count))) != nil
  }
}
