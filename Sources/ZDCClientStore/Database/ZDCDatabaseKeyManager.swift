public import Foundation
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Makes and keeps the database's key: 32 random bytes.
///
/// On Apple platforms it lies in the keychain, for this device only. Elsewhere it lies in a file beside the database
/// that only its owner may
/// read. With a pass-phrase, what lies there is sealed under it. A key that exists is never replaced by a new one.
public final class ZDCDatabaseKeyManager: Sendable {
  private let store: any KeyStore
  private let databasePath: URL

  /// - Parameter keychainAccount: the key's name on platforms that have a keychain.
  package convenience init(databasePath: URL, keychainAccount: String) {
    self.init(
      databasePath: databasePath,
      store: PlatformKeyStore.make(databasePath: databasePath, keychainAccount: keychainAccount))
  }

  package init(databasePath: URL, store: any KeyStore) {
    self.databasePath = databasePath
    self.store = store
  }

  // MARK: Asking

  /// Whether there is a key, with or without a pass-phrase.
  public var isConfigured: Bool { store.exists }

  /// Whether the key is under a pass-phrase.
  public var usesPassphrase: Bool { get throws { try stored()?.isSealed ?? false } }

  // MARK: Making

  /// Makes a key and keeps it.
  ///
  /// - Returns: The key for ``ZDCDatabaseConfig``.
  /// - Throws: `ZDCError` with `keyAlreadyConfigured`; `keyMissing` if there is a database already, which no new key
  ///   could open.
  public func createKey() throws -> Data {
    let key = DatabaseKey.random()
    try create(StoredKey.plain(key), key)
    return Data(key.exportBytes())
  }

  /// Makes a key and keeps it under a pass-phrase, which is slow by design: about half a second and 128 MiB.
  ///
  /// - Throws: As ``createKey()``; `invalidPassphrase` for an empty one.
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

  /// The key.
  ///
  /// - Throws: `ZDCError` with `keyNotConfigured`, `passphraseRequired`, `keyFileExposed` or `corruptKeyFile`.
  public func unlock() throws -> Data {
    Data(try requireStored().open().exportBytes())
  }

  /// The key that lies under a pass-phrase.
  ///
  /// - Throws: `ZDCError` with `keyNotConfigured`, `wrongPassphrase` or `corruptKeyFile`; `ZDCSecurityError` with
  ///   `kdfParametersTooWeak` if
  ///   somebody made guessing cheap.
  public func unlock(passphrase: String) throws -> Data {
    Data(try requireStored().open(passphrase).exportBytes())
  }

  // MARK: Changing

  /// Puts the same key under another pass-phrase, or under none.
  ///
  /// - Parameters:
  ///   - current: nil if there is none.
  ///   - new: nil to do without.
  public func changePassphrase(from current: String?, to new: String?) throws {
    let stored = try requireStored()
    let key = try current.map { try stored.open($0) } ?? stored.open()
    try store.replace(try new.map { try StoredKey.sealed(key, $0) }?.bytes ?? StoredKey.plain(key).bytes)
  }

  /// Forgets the key. Without another copy of it the database can never be opened again.
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

// The names that apps of the original framework know.
extension ZDCDatabaseKeyManager {
  /// As ``createKey()``, without handing it out.
  public func createKeychainEntry() throws {
    _ = try createKey()
  }

  /// As ``unlock()``; on a first launch it makes the key.
  ///
  /// - Throws: As ``unlock()``, and `keyMissing` if there is a database but no key.
  public func unlockUsingKeychain() throws -> Data {
    try configureIfNeeded()
    return try unlock()
  }

  /// Makes a key if there is none.
  private func configureIfNeeded() throws {
    guard !isConfigured else { return }
    do { _ = try createKey() } catch let error as ZDCError where error.code == .keyAlreadyConfigured {
      // Another process was first: its key is the one.
    }
  }

  /// Puts the key under a pass-phrase; makes a key if there is none.
  public func createPassphraseEntry(_ passphrase: String) throws {
    if isConfigured {
      try changePassphrase(from: nil, to: passphrase)
    } else {
      _ = try createKey(passphrase: passphrase)
    }
  }

  /// Takes the key out from under the pass-phrase; it stays on this device.
  ///
  /// - Throws: As ``unlock(passphrase:)``.
  public func removePassphraseEntry(_ passphrase: String) throws {
    try changePassphrase(from: passphrase, to: nil)
  }

  /// Does nothing where no pass-phrase is used.
  ///
  /// - Throws: `ZDCError` with `passphraseRequired` where one is: the key lies nowhere else, so that nobody can take
  ///   the pass-phrase away without it; `keyNotConfigured`.
  public func removePassphraseEntry() throws {
    _ = try unlock()
  }

  /// As ``unlock(passphrase:)``.
  public func unlockUsingPassphrase(_ passphrase: String) throws -> Data {
    try unlock(passphrase: passphrase)
  }
}

/// The key as it is kept: `"ZDKP" u8 1 u8 1 b[32] key`, or a key file under a pass-phrase.
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
    return StoredKey(bytes: try KeyFile.seal(key, passphrase: passphrase))
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
    }
  }
}
