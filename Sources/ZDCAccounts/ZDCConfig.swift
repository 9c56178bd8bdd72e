public import Foundation
public import Logging
package import ZDCClientAPI
public import ZDCClientStore
internal import ZDCProtocol
public import ZDCSupport

/// The configuration of a client: its tree, its server, and the location of its local database.
///
/// It is validated when ``ZeroDarkCloud`` is created from it.
///
/// ```swift
/// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
/// config.databaseName = "work"  // a second database of the same app
/// config.logger.logLevel = .warning
/// let zdc = try ZeroDarkCloud(delegate: myDelegate, config: config)
/// ```
public struct ZDCConfig: Sendable {
  /// The app's name for its tree: 8 to 64 characters of `0-9 A-Z a-z . - _`, no leading dot, for example
  /// `com.example.todo`.
  public var primaryTreeID: String
  /// `https://host[:port]`. Plain http is refused except on loopback.
  public var serverURL: URL
  /// The folder of the database. It is created if it is missing, with access for its owner only.
  public var databaseDirectory: URL
  /// The database's file name without extension.
  ///
  /// ```swift
  /// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
  /// config.databaseName = "work"  // work.sqlite; another account of the same app may have its own
  /// ```
  public var databaseName = "zdcDatabase"
  /// Certificates (PEM) to trust instead of the system's, for a server with a private certificate authority.
  ///
  /// ```swift
  /// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.internal")
  /// config.caCertificates = try Data(contentsOf: url)
  /// ```
  public var caCertificates: Data?
  /// Whether unlocking the database starts to push and pull for all local users. Commands and tests that step manually
  /// set this to false.
  ///
  /// ```swift
  /// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
  /// config.syncAutomatically = false  // a command that syncs only when it is asked to
  /// ```
  public var syncAutomatically = true
  /// Limits on the size of the merge journal.
  ///
  /// ```swift
  /// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
  /// config.journalLimits = ZDCJournalLimits()
  /// ```
  public var journalLimits = ZDCJournalLimits()
  /// Receives errors that are not thrown to a caller. Secrets are never logged.
  ///
  /// ```swift
  /// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
  /// config.logger.logLevel = .debug
  /// ```
  public var logger = Logger(label: "ZeroDarkCloud")
  /// Returns the current time in milliseconds since 1970.
  package var clock: @Sendable () -> UInt64 = { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }
  /// The transport to use instead of HTTP to `serverURL`. Tests use it to inject faults.
  package var transport: (any Transport)?
  /// The service that makes requests while the app is suspended; nil for the platform's, if it has one.
  package var systemTransfers: (any SystemTransfers)?
  /// Waits between two attempts of a download.
  package var transferSleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// The clock for the engines' pauses.
  package var engineClock = EngineClock()
  /// How often the engine checks for changes by other processes, and whether their lease is free.
  package var changePollInterval: Duration = .milliseconds(200)

  /// Creates a configuration. Its other properties have defaults.
  ///
  /// ```swift
  /// var config = ZDCConfig(primaryTreeID: "com.example.notes", serverURL: url)
  /// config.databaseName = "work"
  /// ```
  ///
  /// - Parameters:
  ///   - primaryTreeID: The app's name for its tree.
  ///   - serverURL: The address of `zdc-server`.
  ///   - databaseDirectory: The folder of the database; nil for the platform's application data folder.
  public init(primaryTreeID: String, serverURL: URL, databaseDirectory: URL? = nil) {
    self.primaryTreeID = primaryTreeID
    self.serverURL = serverURL
    self.databaseDirectory = databaseDirectory ?? Self.defaultDirectory
  }

  /// Creates a configuration from the text of the server's address.
  ///
  /// ```swift
  /// let config = try ZDCConfig(primaryTreeID: "com.example.notes", server: "https://sync.example.org")
  /// let zdc = try ZeroDarkCloud(delegate: myDelegate, config: config)
  /// ```
  ///
  /// - Parameters:
  ///   - primaryTreeID: The app's name for its tree.
  ///   - server: The address of `zdc-server` as text, for example `https://sync.example.com`.
  ///   - databaseDirectory: The folder of the database; nil for the platform's application data folder.
  /// - Throws: `ZDCError` with `invalidServerURL` if the text is not a URL.
  public init(primaryTreeID: String, server: String, databaseDirectory: URL? = nil) throws(ZDCError) {
    guard let url = URL(string: server) else { throw ZDCError(.invalidServerURL) }
    self.init(primaryTreeID: primaryTreeID, serverURL: url, databaseDirectory: databaseDirectory)
  }

  /// The location of the database file.
  public var databasePath: URL {
    databaseDirectory.appendingPathComponent("\(databaseName).sqlite", isDirectory: false)
  }

  /// Returns a name that distinguishes the database from the app's other databases and from those of other apps. It is
  /// the same in every launch.
  package func stableName(home: String) -> String { "\(primaryTreeID).\(stablePath(home: home))" }

  /// Returns the database's path relative to the home directory, or its full path if it is elsewhere. Some systems
  /// rename the app's home with each update, and data stored under the database's name must still be found.
  package func stablePath(home: String) -> String {
    let (path, home) = (Self.plain(databasePath), Self.plain(URL(fileURLWithPath: home, isDirectory: true)))
    guard path.starts(with: home) else { return "/" + path.joined(separator: "/") }
    return path.dropFirst(home.count).joined(separator: "/")
  }

  /// Returns the components of a path. On Apple's systems `/private/var` and `/var` are the same folder, and both forms
  /// occur.
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
  /// Validates the configuration.
  ///
  /// - Throws: `ZDCError` with `invalidTreeID`, `invalidServerURL`, `insecureServerURL` or `invalidDatabaseName`.
  package func validate() throws(ZDCError) {
    guard AppTreeID.isValid(primaryTreeID) else { throw ZDCError(.invalidTreeID) }
    guard !databaseName.isEmpty, !databaseName.contains("/"), !databaseName.contains("\0"), databaseName.first != "."
    else { throw ZDCError(.invalidDatabaseName) }
    _ = try serverOrigin()
  }

  /// Returns `scheme://host[:port]` in lower case, without default ports. A login is bound to this origin.
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

  /// Returns whether a host is a loopback address. Names are not resolved: `127.evil.example` is not loopback.
  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "::1" { return true }
    let octets = host.split(separator: ".", omittingEmptySubsequences: false)
    return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0) != nil }
  }
}
