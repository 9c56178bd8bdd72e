import Foundation
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Serialized, because each scrypt call takes a thread and 128 MiB.
@Suite(.serialized) struct DatabaseKeyTests {
  let fixture: DatabaseFixture
  let store: FileKeyStore
  let keys: ZDCDatabaseKeyManager

  init() throws {
    fixture = try DatabaseFixture()
    store = FileKeyStore(databasePath: fixture.path)
    keys = ZDCDatabaseKeyManager(databasePath: fixture.path, store: store)
  }

  private func again() -> ZDCDatabaseKeyManager {
    ZDCDatabaseKeyManager(databasePath: fixture.path, store: FileKeyStore(databasePath: fixture.path))
  }

  @Test func newKey_has32Bytes_andIsThereAfterARelaunch() throws {
    #expect(!keys.isConfigured)
    let key = try keys.createKey()
    #expect(key.count == 32)
    #expect(again().isConfigured)
    #expect(try again().unlock() == key)
    #expect(try again().usesPassphrase == false)
  }

  @Test func keyFile_isForItsOwnerOnly_andNoDraftStays() throws {
    _ = try keys.createKey()
    let mode = try FileManager.default.attributesOfItem(atPath: store.file.path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) == [store.file.lastPathComponent])
  }

  @Test func existingKey_isNeverReplacedByANewOne() throws {
    let key = try keys.createKey()
    #expect(zdcCode { _ = try again().createKey() } == .keyAlreadyConfigured)
    #expect(zdcCode { _ = try again().createKey(passphrase: "x") } == .keyAlreadyConfigured)
    #expect(try store.create([1, 2, 3]) == false)
    #expect(try keys.unlock() == key)
  }

  @Test func concurrentKeyCreations_oneWins() async throws {
    let fixture = fixture
    let made = await withTaskGroup(of: Data?.self) { group in
      for _ in 0..<8 {
        group.addTask {
          let keys = ZDCDatabaseKeyManager(
            databasePath: fixture.path, store: FileKeyStore(databasePath: fixture.path))
          return try? keys.createKey()
        }
      }
      return await group.reduce(into: [Data]()) { made, key in key.map { made.append($0) } }
    }
    #expect(made.count == 1)
    #expect(try keys.unlock() == made.first)
  }

  @Test func databaseWithoutItsKey_getsNoNewOne() throws {
    try fixture.open().close()
    #expect(zdcCode { _ = try keys.createKey() } == .keyMissing)
    #expect(zdcCode { _ = try keys.unlock() } == .keyNotConfigured)
  }

  @Test func passphrase_opens_wrongOneDoesNot_noneDoesNot() throws {
    let key = try keys.createKey(passphrase: "correct horse")
    #expect(try again().usesPassphrase)
    #expect(try again().unlock(passphrase: "correct horse") == key)
    #expect(zdcCode { _ = try keys.unlock(passphrase: "battery staple") } == .wrongPassphrase)
    #expect(zdcCode { _ = try keys.unlock() } == .passphraseRequired)
    #expect(try Data(contentsOf: store.file).range(of: key) == nil)
  }

  @Test func passphraseAddedChangedRemoved_theKeyStays() throws {
    let key = try keys.createKey()
    try keys.changePassphrase(from: nil, to: "one")
    #expect(try Data(contentsOf: store.file).range(of: key) == nil)
    #expect(zdcCode { try keys.changePassphrase(from: "wrong", to: "two") } == .wrongPassphrase)
    try keys.changePassphrase(from: "one", to: "two")
    #expect(try keys.unlock(passphrase: "two") == key)
    try keys.changePassphrase(from: "two", to: nil)
    #expect(try keys.unlock() == key)
  }

  @Test func emptyPassphrase_isRefused() {
    #expect(zdcCode { _ = try keys.createKey(passphrase: "") } == .invalidPassphrase)
    #expect(!keys.isConfigured)
  }

  /// PROTOCOL, `kdfParametersTooWeak`: log2(N) is the byte after the preamble.
  @Test func loweredCost_isRefusedBeforeThePassphraseIsUsed() throws {
    _ = try keys.createKey(passphrase: "correct horse")
    var bytes = try #require(try store.read())
    bytes[6] = 1
    try store.replace(bytes)
    #expect(throws: ZDCSecurityError(.kdfParametersTooWeak)) { _ = try keys.unlock(passphrase: "correct horse") }
  }

  private static let damaged = [
    [], [1, 2, 3], Array("ZDKP".utf8) + [1, 1], Array("ZDKP".utf8) + [UInt8](repeating: 1, count: 35),
    // A keyring is not a key file.
    Array("ZDKR".utf8) + [1, 1] + [UInt8](repeating: 1, count: 32),
  ]

  @Test(arguments: damaged) func damagedKeyFile_isSaidToBeDamaged(bytes: [UInt8]) throws {
    #expect(try store.create(bytes))
    #expect(zdcCode { _ = try keys.unlock() } == .corruptKeyFile)
    #expect(keys.isConfigured)
    #expect(zdcCode { _ = try keys.createKey() } == .keyAlreadyConfigured)
  }

  @Test func damagedSealedKeyFile_isSaidToBeDamaged() throws {
    #expect(try store.create(Array("ZDKF".utf8) + [1, 1, 17]))
    #expect(zdcCode { _ = try keys.unlock(passphrase: "x") } == .corruptKeyFile)
  }

  @Test(arguments: [0o644, 0o640, 0o602]) func exposedKeyFile_isNotUsed(mode: Int) throws {
    _ = try keys.createKey()
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: store.file.path)
    #expect(zdcCode { _ = try keys.unlock() } == .keyFileExposed)
  }

  @Test("O-b1: on a first launch unlockUsingKeychain makes the key")
  func firstLaunch_unlockUsingKeychainMakesTheKey() throws {
    let key = try keys.unlockUsingKeychain()
    #expect(key.count == 32 && keys.isConfigured)
    #expect(try again().unlockUsingKeychain() == key)
    try keys.createPassphraseEntry("one")
    #expect(zdcCode { _ = try keys.unlockUsingKeychain() } == .passphraseRequired)
    try fixture.open().close()
    try keys.deleteAllPasscodeData()
    // A database whose key is missing does not get a new one.
    #expect(zdcCode { _ = try keys.unlockUsingKeychain() } == .keyMissing)
  }

  @Test func originalsNames_workTogether() throws {
    try keys.createKeychainEntry()
    let key = try keys.unlockUsingKeychain()
    try keys.createPassphraseEntry("one")
    #expect(try keys.unlockUsingPassphrase("one") == key)
    #expect(zdcCode { try keys.removePassphraseEntry() } == .passphraseRequired)
    #expect(zdcCode { try keys.removePassphraseEntry("two") } == .wrongPassphrase)
    #expect(try keys.unlockUsingPassphrase("one") == key)
    try keys.removePassphraseEntry("one")
    #expect(try keys.unlockUsingKeychain() == key)
    try keys.removePassphraseEntry()
    try keys.deleteAllPasscodeData()
    #expect(zdcCode { try keys.removePassphraseEntry() } == .keyNotConfigured)
    #expect(!keys.isConfigured)
  }
}
