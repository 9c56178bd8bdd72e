public import ZDCProtocol

/// An error on this device: configuration, database, keys, files or account.
///
/// Other failures have types of their own:
///
/// - `ZDCSecurityError`: data from others fails verification.
/// - `ZDCServerError`: the server refuses a request.
/// - `ZDCTransportError`: the server cannot be reached.
/// - `ZDCCloudError`: a transaction refuses a request.
/// - `CancellationError`: the task was cancelled.
///
/// The description holds no names, keys or content, so it may be logged; ``underlying`` is for debugging.
///
/// ```swift
/// do { try zdc.unlockOrCreateDatabase(databaseConfig) }
/// catch let error as ZDCError where error.code == .diskFull { askForRoom() }
/// ```
public struct ZDCError: Error, Sendable {
  /// What failed.
  public let code: Code
  /// Additional details: an identifier chosen by the app or a number, never a name or content.
  public var detail: String?
  /// The error that led to this one. It may hold names or paths: do not log it.
  public var underlying: (any Error)?

  /// Creates an error, for previews and tests.
  public init(_ code: Code, detail: String? = nil, underlying: (any Error)? = nil) {
    self.code = code
    self.detail = detail
    self.underlying = underlying
  }
}

extension ZDCError {
  /// The kind of error. Later versions may add codes, so a `switch` needs a `default`.
  ///
  /// ```swift
  /// do {
  ///   try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// } catch let error as ZDCError {
  ///   switch error.code {
  ///   case .syncedElsewhere: break  // the other process sends the changes
  ///   case .diskFull: askForRoom()
  ///   case .localUserNotFound: askForWordsOrNewAccount()
  ///   default: report(error)
  ///   }
  /// }
  /// ```
  public struct Code: ErrorCode, Hashable, Sendable, CustomStringConvertible {
    package enum Name: String, CaseIterable, Sendable {
      // Configuration.
      case invalidTreeID, invalidServerURL, insecureServerURL, invalidDatabaseName, invalidParameter
      case cryptographyFailure
      // The database.
      case databaseLocked, databaseAlreadyUnlocked, invalidEncryptionKey, wrongDatabaseKey, corruptDatabase
      case foreignDatabase, databaseTooNew, databaseNotWritable, databaseBusy, databaseFailure, diskFull
      case readOnlyConnection, transactionRolledBack, reservedName, duplicateMigration
      // The app's objects.
      case collectionNotRegistered, collectionTypeMismatch, objectNotEncodable, objectNotDecodable
      // The database's key.
      case keyNotConfigured, keyAlreadyConfigured, keyMissing, keyFileExposed, corruptKeyFile, keyStoreFailure
      case passphraseRequired, wrongPassphrase, invalidPassphrase
      // Accounts.
      case localUserNotFound, localUserNotReady, changesQueued, invalidWords, accountNotFound, syncedElsewhere
      case otherAccount, deviceNotFound, invalidLink, linkExpired, userNotFound
      // Nodes and content.
      case nodeNotFound, nodeNotUploaded, noContent, downloadFailed, fileFailure, fileModifiedDuringRead
      case sectionTooLarge, noDataFromApp
    }

    package let name: Name

    package init(_ name: Name) { self.name = name }

    /// The code's name, which is stable.
    public var description: String { name.rawValue }
  }
}

extension ZDCError: CustomStringConvertible {
  /// What failed and what to do about it. It may be logged.
  public var description: String {
    guard let detail else { return code.explanation }
    return "\(code.explanation) (\(detail))"
  }
}
