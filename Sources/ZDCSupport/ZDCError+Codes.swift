extension ZDCError.Code {
  // MARK: Configuration

  /// The app's tree ID has a wrong form. Use 8 to 64 of `0-9 A-Z a-z . - _`, without a dot in front.
  public static let invalidTreeID = Self(.invalidTreeID)
  /// The server's address has a wrong form. Use `https://host` or `https://host:port`.
  public static let invalidServerURL = Self(.invalidServerURL)
  /// The server's address is plain http to another machine. Use https.
  public static let insecureServerURL = Self(.insecureServerURL)
  /// The name of the database is not a file name. Use one without slashes.
  public static let invalidDatabaseName = Self(.invalidDatabaseName)
  /// An argument is outside its range. Correct the call.
  public static let invalidParameter = Self(.invalidParameter)
  /// The platform's cryptography failed an operation that cannot fail. Restart the app.
  public static let cryptographyFailure = Self(.cryptographyFailure)

  // MARK: The database

  /// The database is not unlocked yet, or was closed. Call `unlockOrCreateDatabase(_:)` first.
  public static let databaseLocked = Self(.databaseLocked)
  /// `unlockOrCreateDatabase(_:)` was called twice. Use the session of the first call.
  public static let databaseAlreadyUnlocked = Self(.databaseAlreadyUnlocked)
  /// The encryption key has another length than 32 bytes. Make one with `ZDCDatabaseKeyManager`.
  public static let invalidEncryptionKey = Self(.invalidEncryptionKey)
  /// The key does not open the database, which is unchanged. Unlock it with the key that created it.
  public static let wrongDatabaseKey = Self(.wrongDatabaseKey)
  /// The database is damaged. Nothing was changed. Move it away and log in again, or restore a backup.
  public static let corruptDatabase = Self(.corruptDatabase)
  /// The file is a database of another program. Nothing was changed. Choose another name or folder.
  public static let foreignDatabase = Self(.foreignDatabase)
  /// A newer version made the database. Nothing was changed. Update the app.
  public static let databaseTooNew = Self(.databaseTooNew)
  /// The folder or a file of the database cannot be written. Check its permissions.
  public static let databaseNotWritable = Self(.databaseNotWritable)
  /// Another process has held the database for too long. Try again.
  public static let databaseBusy = Self(.databaseBusy)
  /// The system failed to read or write the database; `detail` has the reason. Check the disk, then try again.
  public static let databaseFailure = Self(.databaseFailure)
  /// There is no room on the disk, or a quota is exhausted. Nothing was changed. Make room, then try again.
  public static let diskFull = Self(.diskFull)
  /// A write on a read-only connection. Write through `rwDatabaseConnection`.
  public static let readOnlyConnection = Self(.readOnlyConnection)
  /// A call was deferred to the end of a transaction, which was rolled back. Request it again.
  public static let transactionRolledBack = Self(.transactionRolledBack)
  /// A table or migration of the app has a name of the framework's. Choose another name.
  public static let reservedName = Self(.reservedName)
  /// Two migrations have the same identifier, which `detail` names. Rename one.
  public static let duplicateMigration = Self(.duplicateMigration)

  // MARK: The app's objects

  /// No type is registered for the collection that `detail` names. Register it in `ZDCDatabaseConfig`.
  public static let collectionNotRegistered = Self(.collectionNotRegistered)
  /// The object has another type than its collection is registered for. Correct the call or the registration.
  public static let collectionTypeMismatch = Self(.collectionTypeMismatch)
  /// The object, or the value of a tag, cannot be encoded; `underlying` has the reason. Correct the value.
  public static let objectNotEncodable = Self(.objectNotEncodable)
  /// A stored object, or an image, cannot be decoded as its type. Give the type a decoder that reads the app's earlier
  /// forms.
  public static let objectNotDecodable = Self(.objectNotDecodable)

  // MARK: The database's key

  /// There is no database key yet. Call `createKey()`.
  public static let keyNotConfigured = Self(.keyNotConfigured)
  /// There is a database key already, which is unchanged. Call `unlock()`.
  public static let keyAlreadyConfigured = Self(.keyAlreadyConfigured)
  /// The database exists but its key is gone. Put the key back, or move the database away and log in again.
  public static let keyMissing = Self(.keyMissing)
  /// Other users may read the key file. Set its mode to 0600.
  public static let keyFileExposed = Self(.keyFileExposed)
  /// The key file is damaged. Restore it from a backup, or move key and database away and log in again.
  public static let corruptKeyFile = Self(.corruptKeyFile)
  /// The platform's key store failed; `detail` has its status. Try again when the device is unlocked.
  public static let keyStoreFailure = Self(.keyStoreFailure)
  /// The database key is under a pass-phrase. Call `unlock(passphrase:)`.
  public static let passphraseRequired = Self(.passphraseRequired)
  /// The pass-phrase does not open the key, which is unchanged. Ask for it again.
  public static let wrongPassphrase = Self(.wrongPassphrase)
  /// The pass-phrase is empty. Ask for another one.
  public static let invalidPassphrase = Self(.invalidPassphrase)

  // MARK: Accounts

  /// No account with this ID is on this device. Use an ID of `allLocalUserIDs()`, or create or add the account.
  public static let localUserNotFound = Self(.localUserNotFound)
  /// The account is still being created. Call `createAccount(invite:)` again.
  public static let localUserNotReady = Self(.localUserNotReady)
  /// Changes are still queued, and would be lost. Sync first, or pass `force`.
  public static let changesQueued = Self(.changesQueued)
  /// The words are not an access key; `detail` says which one. Ask for them again.
  public static let invalidWords = Self(.invalidWords)
  /// The server has no account with these words. Check the words and the server's address.
  public static let accountNotFound = Self(.accountNotFound)
  /// The words open another account than the one to log in to again. Nothing was changed. Ask for this account's words.
  public static let otherAccount = Self(.otherAccount)
  /// The server knows no such device of this account. List the devices again.
  public static let deviceNotFound = Self(.deviceNotFound)
  /// The text is not the code of a new device. Scan or type it again.
  public static let invalidLink = Self(.invalidLink)
  /// The code of a new device works no longer. Let the device show another one.
  public static let linkExpired = Self(.linkExpired)
  /// No such user is on the server. Check the ID and the server's address.
  public static let userNotFound = Self(.userNotFound)
  /// Another process syncs this database: it pushes queued changes and pulls new ones. There is nothing to do.
  public static let syncedElsewhere = Self(.syncedElsewhere)

  // MARK: Nodes and content

  /// No such node is on this device. Pull first, or insert a new node in the same transaction.
  public static let nodeNotFound = Self(.nodeNotFound)
  /// The node has no content in the cloud yet. Wait for its upload.
  public static let nodeNotUploaded = Self(.nodeNotUploaded)
  /// The node has no such content. Ask for another section, or skip the node.
  public static let noContent = Self(.noContent)
  /// A background download has failed for a week; `detail` has the node. Download it again.
  public static let downloadFailed = Self(.downloadFailed)
  /// A file could not be read or written; `detail` or `underlying` has the reason. Check path and permissions.
  public static let fileFailure = Self(.fileFailure)
  /// A file changed while it was being read. Try again when no other process writes to it.
  public static let fileModifiedDuringRead = Self(.fileModifiedDuringRead)
  /// Metadata or thumbnail exceed 16 MiB. Put more into the data.
  public static let sectionTooLarge = Self(.sectionTooLarge)
  /// The app rejected the promise of a node's content, or its promises form a cycle. The upload waits. When there is
  /// content, call `queueDataUpload(forNodeID:withChangeset:)`.
  public static let noDataFromApp = Self(.noDataFromApp)
}

extension ZDCError.Code {
  /// What failed and what to do about it.
  public var explanation: String {
    switch name {
    case .invalidTreeID: "the tree's name is invalid; use 8 to 64 of 0-9 A-Z a-z . - _ and no dot in front"
    case .invalidServerURL: "the server's address is invalid; use https://host[:port] without path, user or query"
    case .insecureServerURL: "plain http is only for loopback; use https"
    case .invalidDatabaseName: "the database's name is invalid; use a file name"
    case .invalidParameter: "an argument is outside its range; correct the call"
    case .cryptographyFailure: "the platform's cryptography failed; restart the app"
    case .databaseLocked: "the database is locked; call unlockOrCreateDatabase first"
    case .databaseAlreadyUnlocked: "the database is already unlocked; use the session of the first call"
    case .invalidEncryptionKey: "the encryption key is invalid; use 32 bytes"
    case .wrongDatabaseKey: "this key does not open the database, which is unchanged; use the key that created it"
    case .corruptDatabase: "the database is damaged; move it away and log in again, or restore a backup"
    case .foreignDatabase: "the file is a database of something else; choose another name or folder"
    case .databaseTooNew: "the database was made by a newer version; update the app"
    case .databaseNotWritable: "the database's folder or file cannot be written; check its permissions"
    case .databaseBusy: "another process has held the database for too long; try again"
    case .databaseFailure: "the database cannot be read or written; check the disk, then try again"
    case .diskFull: "the disk is full; make room, then try again"
    case .readOnlyConnection: "this connection reads only; write through rwDatabaseConnection"
    case .transactionRolledBack: "the transaction in which this was requested was rolled back; request it again"
    case .reservedName:
      "names that begin with zdc_ (tables) or zdc. (migrations) belong to the framework; choose another one"
    case .duplicateMigration: "two migrations have the same identifier; rename one"
    case .collectionNotRegistered: "no type is registered for the collection; register it in ZDCDatabaseConfig"
    case .collectionTypeMismatch:
      "the object has another type than its collection is registered for; correct the call or the registration"
    case .objectNotEncodable: "the object cannot be encoded; correct its values"
    case .objectNotDecodable: "a stored object cannot be decoded as its type; decode the app's earlier forms too"
    case .keyNotConfigured: "there is no database key yet; call createKey"
    case .keyAlreadyConfigured: "there is a database key already; call unlock"
    case .keyMissing: "the database exists but its key is gone; put the key back, or move the database away"
    case .keyFileExposed: "others may read the key file; set its mode to 0600"
    case .corruptKeyFile: "the key file is damaged; restore it from a backup"
    case .keyStoreFailure: "the platform's key store failed; try again when the device is unlocked"
    case .passphraseRequired: "the database key is under a pass-phrase; ask for it, then unlock with it"
    case .wrongPassphrase: "wrong pass-phrase; try again"
    case .invalidPassphrase: "the pass-phrase is empty; choose another one"
    case .localUserNotFound: "no such local user; create an account or log in first"
    case .localUserNotReady: "the account is still being created; create it again to resume"
    case .changesQueued: "changes are still queued; sync first, or force"
    case .invalidWords: "these words are not an access key; check them"
    case .accountNotFound: "the server knows no account for these words; check them and the server's address"
    case .otherAccount: "these words open another account; give the words of this one"
    case .deviceNotFound: "the account has no such device; list the devices again"
    case .invalidLink: "this is not the code of a new device; scan or type it again"
    case .linkExpired: "no device shows this code any more; let it show another one"
    case .userNotFound: "the server knows no such user; check the ID and the server's address"
    case .syncedElsewhere: "another process syncs this database; wait for it, or end it"
    case .nodeNotFound: "no such node on this device; sync, or insert a new one first, in the same transaction"
    case .nodeNotUploaded: "the node was not uploaded yet; wait for its upload"
    case .noContent: "the node has no content; skip it"
    case .downloadFailed: "the download was tried for a week; start it again"
    case .fileFailure: "a file could not be read or written; check its path and permissions"
    case .fileModifiedDuringRead:
      "the file changed while it was being read; try again when no other process writes to it"
    case .sectionTooLarge:
      "metadata and thumbnail may have 16 MiB each, a signal 983,040 bytes; put more into the data, or send a message"
    case .noDataFromApp: "the app has no content for the node; queue its upload when there is some"
    }
  }
}
