internal import Foundation

/// The locations of a profile's files: settings below `XDG_CONFIG_HOME`, the database below `XDG_DATA_HOME`.
package struct ProfilePaths: Sendable, Hashable {
  package let name: String
  package let configFolder: String
  package let dataFolder: String

  /// - Parameter environment: The environment, of which `XDG_CONFIG_HOME`, `XDG_DATA_HOME` and `HOME` are used. Values
  ///   that are not absolute are ignored, as the XDG specification requires.
  /// - Throws: ``CommandError`` for a name that could escape the folder.
  package init(_ name: String, environment: [String: String]) throws(CommandError) {
    guard Self.isValid(name) else {
      throw CommandError(
        .usage, "invalidProfile", "not a profile's name: \(ShownName.text(name))",
        hint: "use up to 64 letters, digits, dots, dashes and underscores")
    }
    self.name = name
    configFolder = try Self.base(environment, "XDG_CONFIG_HOME", ".config") + "/zdc/profiles"
    dataFolder = try Self.base(environment, "XDG_DATA_HOME", ".local/share") + "/zdc/profiles/" + name
  }

  /// Holds the data of all profiles.
  package var profilesFolder: String { AbsolutePath.folder(of: dataFolder) }
  package var configFile: String { "\(configFolder)/\(name).json" }
  /// Holds input from pipes that has not been sent yet.
  package var spoolFolder: String { "\(dataFolder)/spool" }

  private static func isValid(_ name: String) -> Bool {
    guard (1...64).contains(name.utf8.count), name.first != "." else { return false }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
  }

  private static func base(
    _ environment: [String: String], _ variable: String, _ standard: String
  ) throws(CommandError) -> String {
    if let value = environment[variable], value.hasPrefix("/") { return value }
    if let home = environment["HOME"], home.hasPrefix("/") { return home + "/" + standard }
    throw CommandError(.configuration, "noHome", "neither \(variable) nor HOME is an absolute path")
  }

  /// Returns the names of all profiles, sorted.
  package static func all(environment: [String: String]) throws(CommandError) -> [String] {
    let folder = try ProfilePaths("default", environment: environment).configFolder
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return files.filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.filter(isValid).sorted()
  }
}
