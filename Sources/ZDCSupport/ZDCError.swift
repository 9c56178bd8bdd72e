/// An error on this device: configuration, database, keys, files, network or account.
///
/// Data from others that fails verification throws ``ZDCSecurityError``. Requests that a transaction refuses throw
/// `ZDCCloudError`. The description holds no names, keys or content, so it may be logged; ``underlying`` is for
/// debugging.
public struct ZDCError: Error, Sendable {
  public enum Code: String, Sendable, CaseIterable, Codable {
    // Configuration.
    case invalidTreeID, invalidServerURL, insecureServerURL, invalidDatabaseName
    // The database.
    case databaseLocked, databaseAlreadyUnlocked, invalidEncryptionKey, wrongDatabaseKey, corruptDatabase
    case foreignDatabase, databaseTooNew, databaseNotWritable, databaseBusy, databaseFailure, diskFull
    case readOnlyConnection, reservedName, duplicateMigration
    // The app's objects.
    case collectionNotRegistered, collectionTypeMismatch, objectNotEncodable, objectNotDecodable
    // The database's key.
    case keyNotConfigured, keyAlreadyConfigured, keyMissing, keyFileExposed, corruptKeyFile, keyStoreFailure
    case passphraseRequired, wrongPassphrase, invalidPassphrase
    // Accounts.
    case localUserNotFound, localUserNotReady, localUserExists, changesQueued, invalidWords, accountNotFound
    case registrationRefused, sessionExpired, syncedElsewhere
    // The network.
    case serverUnreachable, serverRefused, serverAnswerInvalid, serverTooNew
    // Nodes and content.
    case nodeNotFound, nodeNotUploaded, noContent, downloadFailed, fileFailure, fileModifiedDuringRead
    case transactionRolledBack
    case invalidParameter, sectionTooLarge, cancelled
  }

  public let code: Code
  /// Additional details: an identifier chosen by the app or a number, never a name or content.
  public var detail: String?
  public var underlying: (any Error)?

  public init(_ code: Code, detail: String? = nil, underlying: (any Error)? = nil) {
    self.code = code
    self.detail = detail
    self.underlying = underlying
  }
}

extension ZDCError: CustomStringConvertible {
  /// A description that is safe to log: what failed and what to do.
  public var description: String {
    guard let detail else { return code.explanation }
    return "\(code.explanation) (\(detail))"
  }
}

extension ZDCError.Code {
  /// A description of what failed and what to do about it.
  public var explanation: String {
    Self.configuration[self] ?? Self.database[self] ?? Self.keys[self] ?? Self.accounts[self] ?? rawValue
  }

  private static let configuration: [Self: String] = [
    .invalidTreeID: "the tree's name must have 8 to 64 of 0-9 A-Z a-z . - _ and no dot in front",
    .invalidServerURL: "the server's address must be https://host[:port] without path, user or query",
    .insecureServerURL: "plain http is only for loopback: use https",
    .invalidDatabaseName: "the database's name must be a file name",
    .invalidParameter: "an argument is outside its range",
    .cancelled: "the task was cancelled",
    .sectionTooLarge: "metadata and thumbnail may have 16 MiB each: put more into the data",
  ]

  private static let database: [Self: String] = [
    .databaseLocked: "the database is locked: call unlockOrCreateDatabase first",
    .databaseAlreadyUnlocked: "the database is already unlocked",
    .invalidEncryptionKey: "the encryption key must have 32 bytes",
    .wrongDatabaseKey: "this key does not open the database: nothing was changed",
    .corruptDatabase: "the database is damaged: nothing was changed, restore it or move it away",
    .foreignDatabase: "the file is a database of something else: nothing was changed, choose another name or folder",
    .databaseTooNew: "the database was made by a newer version: update the app; nothing was changed",
    .databaseNotWritable: "the database's folder or file cannot be written: check its permissions",
    .databaseBusy: "another process has held the database for too long: try again",
    .databaseFailure: "the database failed",
    .diskFull: "the disk is full",
    .readOnlyConnection: "this connection reads only: write through rwDatabaseConnection",
    .reservedName: "names that begin with zdc_ (tables) or zdc. (migrations) belong to the framework",
    .duplicateMigration: "two migrations have the same identifier",
    .collectionNotRegistered: "no type is registered for the collection: register it in ZDCDatabaseConfig",
    .collectionTypeMismatch: "the object has another type than its collection is registered for",
    .objectNotEncodable: "the object cannot be encoded",
    .objectNotDecodable: "the stored object cannot be decoded as its type",
    .fileFailure: "a file could not be read or written",
    .fileModifiedDuringRead: "the file changed while it was being read: try again when no other process writes to it",
  ]

  private static let keys: [Self: String] = [
    .keyNotConfigured: "there is no database key yet: call createKey",
    .keyAlreadyConfigured: "there is a database key already: it was not replaced",
    .keyMissing: "the database exists but its key is gone: put the key back, or move the database away",
    .keyFileExposed: "others may read the key file: set its mode to 0600",
    .corruptKeyFile: "the key file is damaged",
    .keyStoreFailure: "the platform's key store failed",
    .passphraseRequired: "the database key is under a pass-phrase",
    .wrongPassphrase: "wrong pass-phrase",
    .invalidPassphrase: "the pass-phrase is empty",
  ]

  private static let accounts: [Self: String] = [
    .localUserNotFound: "no such local user",
    .localUserNotReady: "the account is still being created",
    .localUserExists: "this account is already on this device",
    .changesQueued: "changes are still queued: sync first, or force",
    .invalidWords: "these words are not an access key",
    .accountNotFound: "the server knows no account for these words",
    .registrationRefused: "the server does not accept this registration",
    .syncedElsewhere: "another process syncs this database: it pushes queued changes and pulls new ones",
    .sessionExpired: "the session has ended",
    .serverUnreachable: "the server cannot be reached",
    .serverRefused: "the server refused the request",
    .serverAnswerInvalid: "the server sent an invalid response",
    .serverTooNew: "the server speaks a newer protocol: update the app",
    .nodeNotFound: "no such node on this device: insert a new one first, in the same transaction",
    .nodeNotUploaded: "the node was not uploaded yet",
    .noContent: "the node has no content",
    .downloadFailed: "the download failed",
    .transactionRolledBack: "the transaction in which this was requested was rolled back: request it again",
  ]
}
