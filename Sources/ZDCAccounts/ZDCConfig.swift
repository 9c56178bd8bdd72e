public import Foundation
public import Logging
package import ZDCClientAPI
public import ZDCClientStore
internal import ZDCProtocol
package import ZDCSupport

/// Which tree, which server, and where the local database lies.
///
/// Checked when ``ZeroDarkCloud`` is made from it.
public struct ZDCConfig: Sendable {
  /// The app's name for its tree: 8 to 64 of `0-9 A-Z a-z . - _`, no dot in front, for example `com.example.todo`.
  public var primaryTreeID: String
  /// `https://host[:port]`. Plain http is refused except on loopback.
  public var serverURL: URL
  /// Created if it is missing, for its owner only.
  public var databaseDirectory: URL
  /// The database's file name without extension.
  public var databaseName = "zdcDatabase"
  /// Certificates (PEM) to trust instead of the system's, for a server with an own authority.
  public var caCertificates: Data?
  /// Whether unlocking starts to push and pull for all local users. Commands and tests that step by hand say false.
  public var syncAutomatically = true
  /// How much of the merge journal is kept.
  public var journalLimits = ZDCJournalLimits()
  /// Where errors go that no caller takes. Nothing secret is ever logged.
  public var logger = Logger(label: "ZeroDarkCloud")
  /// Milliseconds since 1970.
  package var clock: @Sendable () -> UInt64 = { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }
  /// Instead of HTTP to `serverURL`: tests put faults in between.
  package var transport: (any ZDCTransport)?
  /// How the pauses between two tries of a download pass.
  package var transferSleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// How the pauses of the engines pass.
  package var engineClock = EngineClock()
  /// How often the engine looks for changes that other processes made, and whether their lease is free.
  package var changePollInterval: Duration = .milliseconds(200)

  /// - Parameters:
  ///   - primaryTreeID: The app's name for its tree.
  ///   - serverURL: Where `zdc-server` answers.
  ///   - databaseDirectory: nil for the platform's folder of application data.
  public init(primaryTreeID: String, serverURL: URL, databaseDirectory: URL? = nil) {
    self.primaryTreeID = primaryTreeID
    self.serverURL = serverURL
    self.databaseDirectory = databaseDirectory ?? Self.defaultDirectory
  }

  /// Where the database's file is.
  public var databasePath: URL {
    databaseDirectory.appendingPathComponent("\(databaseName).sqlite", isDirectory: false)
  }

  /// Tells the database from the app's others, and from those of other apps. The same in every launch.
  package func stableName(home: String) -> String { "\(primaryTreeID).\(stablePath(home: home))" }

  /// The database's path from the home directory on; all of it where it lies elsewhere. Some systems give the app's home
  /// another name with each update, and what is kept under the database's name has to be found then.
  package func stablePath(home: String) -> String {
    let (path, home) = (Self.plain(databasePath), Self.plain(URL(fileURLWithPath: home, isDirectory: true)))
    guard path.starts(with: home) else { return "/" + path.joined(separator: "/") }
    return path.dropFirst(home.count).joined(separator: "/")
  }

  /// `/private/var` and `/var` are one folder on Apple's systems, which give out both.
  private static func plain(_ url: URL) -> [String] {
    let parts = url.standardizedFileURL.pathComponents.filter { $0 != "/" }
    return parts.starts(with: ["private", "var"]) ? Array(parts.dropFirst()) : parts
  }

  private static var defaultDirectory: URL {
    let folder = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
    return (folder ?? URL(fileURLWithPath: NSHomeDirectory())).appendingPathComponent("ZeroDarkCloud")
  }
}

extension ZDCConfig {
  /// - Throws: `ZDCError` with `invalidTreeID`, `invalidServerURL`, `insecureServerURL` or `invalidDatabaseName`.
  package func validate() throws(ZDCError) {
    guard AppTreeID.isValid(primaryTreeID) else { throw ZDCError(.invalidTreeID) }
    guard !databaseName.isEmpty, !databaseName.contains("/"), !databaseName.contains("\0"), databaseName.first != "."
    else { throw ZDCError(.invalidDatabaseName) }
    _ = try serverOrigin()
  }

  /// `scheme://host[:port]` in lower case, default ports left out: what a login is bound to.
  ///
  /// - Throws: `ZDCError` with `invalidServerURL` or `insecureServerURL`.
  package func serverOrigin() throws(ZDCError) -> String {
    guard
      let parts = URLComponents(url: serverURL, resolvingAgainstBaseURL: true),
      let scheme = parts.scheme?.lowercased(), let host = parts.host?.lowercased(), !host.isEmpty,
      parts.path.isEmpty || parts.path == "/", parts.user == nil, parts.query == nil, parts.fragment == nil
    else { throw ZDCError(.invalidServerURL) }
    let bare = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    switch scheme {
    case "https": break
    case "http": guard Self.isLoopback(bare) else { throw ZDCError(.insecureServerURL) }
    default: throw ZDCError(.invalidServerURL)
    }
    let name = bare.contains(":") ? "[\(bare)]" : bare
    guard let port = parts.port, port != (scheme == "https" ? 443 : 80) else { return "\(scheme)://\(name)" }
    return "\(scheme)://\(name):\(port)"
  }

  /// Names are not resolved: `127.evil.example` is not loopback.
  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "::1" { return true }
    let octets = host.split(separator: ".", omittingEmptySubsequences: false)
    return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0) != nil }
  }
}
