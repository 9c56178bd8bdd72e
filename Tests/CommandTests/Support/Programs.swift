import Foundation

/// The programs of this build, in the folder where `swift build` put them: next to the tests.
enum Programs {
  static let folder: URL = {
    #if os(Linux)
      let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
      return URL(fileURLWithPath: own).deletingLastPathComponent()
    #else
      let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
      return (bundle?.bundleURL ?? Bundle.main.bundleURL).deletingLastPathComponent()
    #endif
  }()

  static var zdc: String { folder.appendingPathComponent("zdc").path }
  static var server: String { folder.appendingPathComponent("zdc-server").path }

  /// The environment without any variable that leads to the real user's profiles.
  static func environment(home: URL) -> [String: String] {
    var environment = ProcessInfo.processInfo.environment.filter {
      !$0.key.hasPrefix("ZDC_") && !$0.key.hasPrefix("XDG_")
    }
    environment["PATH"] = "\(folder.path):\(environment["PATH"] ?? "/usr/bin:/bin")"
    environment["HOME"] = home.path
    environment["LC_ALL"] = "C.UTF-8"
    return environment
  }
}
