internal import Foundation

/// The settings that a profile stores next to its database. Contains no secret.
///
/// `{"version":1,"server":"https://host","userID":"…","caFile":"/path"}`
package struct Profile: Sendable, Hashable, Codable {
  package var version = 1
  package var server: String
  /// Nil until the account exists.
  package var userID: String?
  /// Certificates to trust instead of the system's.
  package var caFile: String?

  package init(server: String, caFile: String? = nil) {
    self.server = server
    self.caFile = caFile
  }

  /// - Returns: nil if there is no such profile.
  package static func read(_ paths: ProfilePaths) throws(CommandError) -> Profile? {
    guard try FileAttributes.of(paths.configFile, followingLink: true) != nil else { return nil }
    guard let data = FileManager.default.contents(atPath: paths.configFile) else {
      throw FileFailure.error(paths.configFile, reading: true, number: EACCES)
    }
    guard let profile = try? JSONDecoder().decode(Profile.self, from: data) else {
      throw CommandError(
        .configuration, "corruptProfile", "\(paths.configFile) is not a profile",
        hint: "restore the file, or move it away and log in again")
    }
    guard profile.version == 1 else {
      throw CommandError(.configuration, "profileTooNew", "the profile was written by a newer zdc", hint: "update zdc")
    }
    return profile
  }

  package func write(_ paths: ProfilePaths) throws(CommandError) {
    do {
      try FileManager.default.createDirectory(
        atPath: paths.configFolder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      try encoder.encode(self).write(to: URL(fileURLWithPath: paths.configFile), options: .atomic)
    } catch {
      throw CommandError(
        .cannotCreate, "cannotWriteProfile", "\(paths.configFile) cannot be written",
        hint: "check the folder's permissions, or set XDG_CONFIG_HOME")
    }
  }
}
