internal import Foundation
internal import Logging
package import ZeroDarkCloud

/// The options with which the user selects and opens a profile.
package struct ProfileOptions: Sendable {
  package var name: String
  package var server: String?
  package var caFile: String?
  package var passphraseFile: String?
  package var isVerbose: Bool
  package var output: Output
  package var environment: [String: String]

  package init(
    name: String, server: String?, caFile: String?, passphraseFile: String?, isVerbose: Bool, output: Output,
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    self.name = name
    self.server = server
    self.caFile = caFile
    self.passphraseFile = passphraseFile
    self.isVerbose = isVerbose
    self.output = output
    self.environment = environment
  }

  package func paths() throws(CommandError) -> ProfilePaths {
    try ProfilePaths(name, environment: environment)
  }

  /// The server's address: the given one, otherwise the one from the environment.
  package var askedServer: String? { server ?? environment["ZDC_SERVER"].flatMap { $0.isEmpty ? nil : $0 } }
}

/// A profile with an open database: one database, one local user.
package final class OpenProfile: Sendable {
  package let paths: ProfilePaths
  package let output: Output
  package let zdc: ZeroDarkCloud
  package let app: FilesApp
  package let server: String
  let connection: ZDCDatabaseConnection
  let reader: ZDCDatabaseConnection
  let databaseManager: ZDCDatabaseManager
  let users: ZDCLocalUserManager
  let people: ZDCUserManager
  let sync: ZDCSyncManager

  /// The app tree ID that all users of `zdc` share.
  package static let treeID = "zdc.files"

  init(_ options: ProfileOptions, profile: Profile, key: (ZDCDatabaseKeyManager) throws -> Data) throws {
    paths = try options.paths()
    output = options.output
    server = profile.server
    app = FilesApp()
    zdc = try ZeroDarkCloud(delegate: app, config: Self.config(options, profile, paths))
    var database = ZDCDatabaseConfig(encryptionKey: try key(zdc.databaseKeyManager))
    database.register(FileRecord.self, inCollection: FileRecord.collection)
    database.register(MessageText.self, inCollection: MessageText.collection)
    try zdc.unlockOrCreateDatabase(database)
    guard let manager = zdc.databaseManager, let users = zdc.localUserManager, let people = zdc.userManager,
      let sync = zdc.syncManager
    else {
      throw ZDCError(.databaseLocked)
    }
    databaseManager = manager
    connection = manager.rwDatabaseConnection
    reader = manager.roDatabaseConnection
    self.users = users
    self.people = people
    self.sync = sync
    app.attach(zdc)
  }

  private static func config(
    _ options: ProfileOptions, _ profile: Profile, _ paths: ProfilePaths
  ) throws -> ZDCConfig {
    guard let url = URL(string: profile.server) else { throw ZDCError(.invalidServerURL) }
    var config = ZDCConfig(
      primaryTreeID: treeID, serverURL: url,
      databaseDirectory: URL(fileURLWithPath: paths.dataFolder, isDirectory: true))
    config.databaseName = "zdc"
    config.syncAutomatically = false
    config.changePollInterval = .milliseconds(25)
    config.logger = Logger(label: "zdc") { label in
      if options.isVerbose { return StreamLogHandler.standardError(label: label) }
      return SwiftLogNoOpLogHandler()
    }
    if options.isVerbose { config.logger.logLevel = .debug }
    if let file = options.caFile ?? profile.caFile {
      let certificates = try certificates(file)
      config.caCertificates = certificates
    }
    return config
  }

  private static func certificates(_ file: String) throws(CommandError) -> Data {
    guard let certificates = FileManager.default.contents(atPath: file) else {
      guard try FileAttributes.of(file, followingLink: true) != nil else {
        throw CommandError(.noInput, "noSuchFile", "\(ShownName.text(file)): no such certificate file")
      }
      throw CommandError(.noPermission, "noPermission", "\(ShownName.text(file)): the certificate file cannot be read")
    }
    guard certificates.range(of: Data("-----BEGIN CERTIFICATE-----".utf8)) != nil else {
      throw CommandError(
        .data, "noCertificate", "\(ShownName.text(file)) holds no certificate in PEM form",
        hint: "a PEM file begins with -----BEGIN CERTIFICATE-----")
    }
    return certificates
  }

  // MARK: Opening

  /// Opens the profile of an existing account.
  ///
  /// - Throws: ``CommandError`` with `noAccount`; ``ZDCError`` from the key and the database.
  package static func open(_ options: ProfileOptions) throws -> OpenProfile {
    let paths = try options.paths()
    guard var profile = try Profile.read(paths), profile.userID != nil else {
      throw CommandError(
        .configuration, "noAccount", "profile \(options.name) has no account",
        hint: "start with zdc account create --server URL or zdc account login --server URL")
    }
    if let server = options.askedServer { profile.server = server }
    return try OpenProfile(options, profile: profile) { keys in
      guard keys.isConfigured else { throw ZDCError(.keyMissing) }
      return try unlock(keys, options)
    }
  }

  private static func unlock(_ keys: ZDCDatabaseKeyManager, _ options: ProfileOptions) throws -> Data {
    guard try keys.usesPassphrase else { return try keys.unlock() }
    if let file = options.passphraseFile { return try keys.unlock(passphrase: Terminal.readSecretFile(file)) }
    guard Terminal.isInputTerminal else { throw ZDCError(.passphraseRequired) }
    return try keys.unlock(passphrase: Terminal.readSecret("Pass-phrase of profile \(options.name): "))
  }

  /// Opens a profile that is about to get its account. Creates the key and the database if they are missing.
  ///
  /// - Parameter newPassphrase: Asks for the passphrase of a new key; returns nil for a key without one.
  static func prepare(
    _ options: ProfileOptions, profile: Profile, newPassphrase: () throws -> String?
  ) throws -> OpenProfile {
    try OpenProfile(options, profile: profile) { keys in
      if keys.isConfigured { return try unlock(keys, options) }
      try makePrivateFolder(options.paths().dataFolder)
      guard let passphrase = try newPassphrase() else { return try keys.createKey() }
      return try keys.createKey(passphrase: passphrase)
    }
  }

  private static func makePrivateFolder(_ path: String) throws(CommandError) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw CommandError(
        .cannotCreate, "cannotCreateProfile", "cannot create \(path)",
        hint: "check the folder's permissions, or set XDG_DATA_HOME")
    }
  }

  // MARK: The account

  /// The profile's only local user.
  func localUserID() async throws -> String {
    guard let id = try await users.allLocalUserIDs().first else { throw ZDCError(.localUserNotFound) }
    return id
  }

  package func close() async throws {
    try await zdc.close()
  }
}
