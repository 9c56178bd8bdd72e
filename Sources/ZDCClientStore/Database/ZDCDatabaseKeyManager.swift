public import Foundation
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Creates and stores the database key: 32 random bytes.
///
/// On Apple platforms the key is in the keychain, for this device only. Elsewhere it is in a file next to the database
/// that only its owner may read. With a pass-phrase, the stored key is sealed under it. A new key never replaces an
/// existing one.
///
/// ```swift
/// let keys = zdc.databaseKeyManager
/// let key = try keys.isConfigured ? keys.unlock() : keys.createKey()
/// let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
/// ```
public final class ZDCDatabaseKeyManager: Sendable {
  private let store: any KeyStore
  private let databasePath: URL

  /// - Parameter keychainAccount: The key's name on platforms that have a keychain.
  package convenience init(databasePath: URL, keychainAccount: String) {
    self.init(
      databasePath: databasePath,
      store: PlatformKeyStore.make(databasePath: databasePath, keychainAccount: keychainAccount))
  }

  package init(databasePath: URL, store: any KeyStore) {
    self.databasePath = databasePath
    self.store = store
  }

  // MARK: State

  /// Whether there is a key, with or without a pass-phrase.
  public var isConfigured: Bool { store.exists }

  /// Whether the key is protected by a pass-phrase.
  public var usesPassphrase: Bool { get throws { try stored()?.isSealed ?? false } }

  // MARK: Creating keys

  /// Creates and stores a key.
  ///
  /// ```swift
  /// let keys = zdc.databaseKeyManager
  /// let key = try keys.isConfigured ? keys.unlock() : keys.createKey()
  /// let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
  /// start(session)
  /// ```
  ///
  /// - Returns: The key for ``ZDCDatabaseConfig``.
  /// - Throws: `ZDCError` with `keyAlreadyConfigured`; `keyMissing` if a database already exists, which no new key
  ///   could open.
  public func createKey() throws -> Data {
    let key = DatabaseKey.random()
    try create(StoredKey.plain(key), key)
    return Data(key.exportBytes())
  }

  /// Creates a key and stores it under a pass-phrase. This is slow by design: about half a second and 128 MiB.
  ///
  /// Without the pass-phrase the database cannot be opened again, so ask for it twice.
  ///
  /// ```swift
  /// let key = try zdc.databaseKeyManager.createKey(passphrase: passphrase)
  /// let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
  /// ```
  ///
  /// - Throws: The errors of ``createKey()``; `invalidPassphrase` for an empty pass-phrase.
  public func createKey(passphrase: String) throws -> Data {
    let key = DatabaseKey.random()
    try create(try StoredKey.sealed(key, passphrase), key)
    return Data(key.exportBytes())
  }

  private func create(_ bytes: StoredKey, _ key: DatabaseKey) throws {
    guard !store.exists else { throw ZDCError(.keyAlreadyConfigured) }
    guard !FileManager.default.fileExists(atPath: databasePath.path) else { throw ZDCError(.keyMissing) }
    guard try store.create(bytes.bytes) else { throw ZDCError(.keyAlreadyConfigured) }
  }

  // MARK: Unlocking

  /// Returns the key.
  ///
  /// - Throws: `ZDCError` with `keyNotConfigured`, `passphraseRequired`, `keyFileExposed` or `corruptKeyFile`.
  public func unlock() throws -> Data {
    Data(try requireStored().open().exportBytes())
  }

  /// Returns the key that is stored under a pass-phrase.
  ///
  /// As slow as ``createKey(passphrase:)``: keep it off the main thread. A key that is stored without a pass-phrase is
  /// returned, whatever is passed.
  ///
  /// ```swift
  /// do {
  ///   let key = try zdc.databaseKeyManager.unlock(passphrase: passphrase)
  ///   start(try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key)))
  /// } catch let error as ZDCError where error.code == .wrongPassphrase {
  ///   askAgain()
  /// }
  /// ```
  ///
  /// - Throws: `ZDCError` with `keyNotConfigured`, `wrongPassphrase` or `corruptKeyFile`; `ZDCSecurityError` with
  ///   `kdfParametersTooWeak` if the stored parameters were weakened to make guessing cheap.
  public func unlock(passphrase: String) throws -> Data {
    Data(try requireStored().open(passphrase).exportBytes())
  }

  // MARK: Changing

  /// Stores the same key under another pass-phrase, or under none.
  ///
  /// The database is not encrypted again, and stays open.
  ///
  /// ```swift
  /// try zdc.databaseKeyManager.changePassphrase(from: nil, to: passphrase)  // protect the key
  /// try zdc.databaseKeyManager.changePassphrase(from: passphrase, to: nil)  // stop protecting it
  /// ```
  ///
  /// - Parameters:
  ///   - current: The current pass-phrase; nil if there is none.
  ///   - new: The new pass-phrase; nil to remove it.
  /// - Throws: `ZDCError` with `keyNotConfigured`, `passphraseRequired` if `current` is nil and the key has a
  ///   pass-phrase, `wrongPassphrase`, `invalidPassphrase` for an empty new one, `corruptKeyFile`, or
  ///   `keyStoreFailure` or `fileFailure` if the new form cannot be stored.
  ///   The key is then stored as before.
  public func changePassphrase(from current: String?, to new: String?) throws {
    let stored = try requireStored()
    let key = try current.map { try stored.open($0) } ?? stored.open()
    try store.replace(try new.map { try StoredKey.sealed(key, $0) }?.bytes ?? StoredKey.plain(key).bytes)
  }

  /// Deletes the key. Without another copy of it, the database can never be opened again.
  ///
  /// - Throws: `ZDCError` with `keyStoreFailure` where the key is in a keychain, `fileFailure` elsewhere.
  public func deleteAllPasscodeData() throws {
    try store.delete()
  }

  private func stored() throws -> StoredKey? {
    try store.read().map(StoredKey.init(bytes:))
  }

  private func requireStored() throws -> StoredKey {
    guard let stored = try stored() else { throw ZDCError(.keyNotConfigured) }
    return stored
  }
}

// Method names of the original framework.
extension ZDCDatabaseKeyManager {
  /// Creates and stores a key like ``createKey()``, without returning it.
  ///
  /// - Throws: The errors of ``createKey()``.
  public func createKeychainEntry() throws {
    _ = try createKey()
  }

  /// Returns the key like ``unlock()``; creates it on first launch.
  ///
  /// ```swift
  /// let key = try zdc.databaseKeyManager.unlockUsingKeychain()
  /// start(try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key)))
  /// ```
  ///
  /// - Throws: The errors of ``unlock()``, and `keyMissing` if there is a database but no key.
  public func unlockUsingKeychain() throws -> Data {
    try configureIfNeeded()
    return try unlock()
  }

  /// Creates a key if there is none.
  private func configureIfNeeded() throws {
    guard !isConfigured else { return }
    do { _ = try createKey() } catch let error as ZDCError where error.code == .keyAlreadyConfigured {
      // Another process was first: its key is used.
    }
  }

  /// Stores the key under a pass-phrase; creates a key if there is none.
  ///
  /// ```swift
  /// _ = try zdc.databaseKeyManager.unlockUsingKeychain()
  /// try zdc.databaseKeyManager.createPassphraseEntry(passphrase)
  /// ```
  ///
  /// - Throws: The errors of ``createKey(passphrase:)`` and of ``changePassphrase(from:to:)``.
  public func createPassphraseEntry(_ passphrase: String) throws {
    if isConfigured {
      try changePassphrase(from: nil, to: passphrase)
    } else {
      _ = try createKey(passphrase: passphrase)
    }
  }

  /// Removes the pass-phrase; the key stays on this device.
  ///
  /// - Throws: The errors of ``unlock(passphrase:)``.
  public func removePassphraseEntry(_ passphrase: String) throws {
    try changePassphrase(from: passphrase, to: nil)
  }

  /// Does nothing if no pass-phrase is used.
  ///
  /// - Throws: `ZDCError` with `passphraseRequired` if one is used: the only copy of the key is sealed under it, so
  ///   removing it requires the pass-phrase; `keyNotConfigured`.
  public func removePassphraseEntry() throws {
    _ = try unlock()
  }

  /// Returns the key like ``unlock(passphrase:)``.
  ///
  /// ```swift
  /// do {
  ///   let key = try zdc.databaseKeyManager.unlockUsingPassphrase(typed)
  ///   start(try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key)))
  /// } catch let error as ZDCError where error.code == .wrongPassphrase {
  ///   askAgain()
  /// }
  /// ```
  ///
  /// - Throws: The errors of ``unlock(passphrase:)``.
  public func unlockUsingPassphrase(_ passphrase: String) throws -> Data {
    try unlock(passphrase: passphrase)
  }
}

/// The stored form of the key: `"ZDKP" u8 1 u8 1 b[32] key`, or a key file under a pass-phrase.
struct StoredKey {
  package let bytes: [UInt8]

  var isSealed: Bool { bytes.starts(with: Array("ZDKF".utf8)) }

  package static func plain(_ key: DatabaseKey) -> StoredKey {
    var out = ByteWriter(magic: "ZDKP", capacity: 38)
    out.append(contentsOf: key.exportBytes())
    return StoredKey(bytes: out.bytes)
  }

  package static func sealed(_ key: DatabaseKey, _ passphrase: String) throws -> StoredKey {
    guard !passphrase.isEmpty else { throw ZDCError(.invalidPassphrase) }
    return try translating { StoredKey(bytes: try KeyFile.seal(key, passphrase: passphrase)) }
  }

  package func open() throws(ZDCError) -> DatabaseKey {
    guard !isSealed else { throw ZDCError(.passphraseRequired) }
    do {
      var reader = ByteReader(bytes)
      try reader.readPreamble(magic: "ZDKP")
      let key = try reader.read(count: 32)
      try reader.finish()
      guard let key = DatabaseKey(key) else { throw ZDCError(.corruptKeyFile) }
      return key
    } catch { throw ZDCError(.corruptKeyFile, underlying: error) }
  }

  package func open(_ passphrase: String) throws -> DatabaseKey {
    guard isSealed else { return try open() }
    do { return try KeyFile.open(bytes, passphrase: passphrase) } catch CryptoFailure.authenticationFailure {
      throw ZDCError(.wrongPassphrase)
    } catch let error as ZDCSecurityError where error.code != .kdfParametersTooWeak {
      throw ZDCError(.corruptKeyFile, underlying: error)
    } catch let error as CryptoFailure {
      throw translated(error)
    }
  }
}
