package import Foundation
internal import ZDCSupport

#if canImport(Security)
  internal import Security
#endif

/// The place where the database key is stored.
package protocol KeyStore: Sendable {
  /// Whether an item exists, readable or not.
  var exists: Bool { get }
  func read() throws -> [UInt8]?
  /// - Returns: false if an item already exists; it is left unchanged.
  func create(_ bytes: [UInt8]) throws -> Bool
  func replace(_ bytes: [UInt8]) throws
  func delete() throws
}

enum PlatformKeyStore {
  package static func make(databasePath: URL, keychainAccount: String) -> any KeyStore {
    #if canImport(Security)
      KeychainKeyStore(account: keychainAccount)
    #else
      FileKeyStore(databasePath: databasePath)
    #endif
  }
}

/// A file of mode 0600 next to the database.
package struct FileKeyStore: KeyStore {
  package let file: URL
  private static let limit = 4_096

  package init(databasePath: URL) {
    file = databasePath.deletingPathExtension().appendingPathExtension("key")
  }

  package var exists: Bool { FileManager.default.fileExists(atPath: file.path) }

  package func read() throws -> [UInt8]? {
    try PrivateFile.read(file, limit: Self.limit)
  }

  package func create(_ bytes: [UInt8]) throws -> Bool {
    let folder = file.deletingLastPathComponent()
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw ZDCError(.databaseNotWritable, underlying: error) }
    return try PrivateFile.create(file, bytes)
  }

  package func replace(_ bytes: [UInt8]) throws {
    try PrivateFile.replace(file, bytes)
  }

  package func delete() throws {
    try PrivateFile.remove(file)
  }
}

#if canImport(Security)
  /// An item in this device's keychain; not in backups, not synchronised.
  struct KeychainKeyStore: KeyStore {
    package let account: String

    private var query: [CFString: Any] {
      [kSecClass: kSecClassGenericPassword, kSecAttrService: "ZeroDarkCloud", kSecAttrAccount: account]
    }

    package var exists: Bool { SecItemCopyMatching(query as CFDictionary, nil) != errSecItemNotFound }

    package func read() throws -> [UInt8]? {
      var result: CFTypeRef?
      let status = SecItemCopyMatching(query.merging([kSecReturnData: true]) { $1 } as CFDictionary, &result)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess, let data = result as? Data else { throw failure(status) }
      return [UInt8](data)
    }

    package func create(_ bytes: [UInt8]) throws -> Bool {
      let item = query.merging([
        kSecValueData: Data(bytes), kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
      ]) { $1 }
      let status = SecItemAdd(item as CFDictionary, nil)
      if status == errSecDuplicateItem { return false }
      guard status == errSecSuccess else { throw failure(status) }
      return true
    }

    package func replace(_ bytes: [UInt8]) throws {
      let status = SecItemUpdate(query as CFDictionary, [kSecValueData: Data(bytes)] as CFDictionary)
      guard status == errSecSuccess else { throw failure(status) }
    }

    package func delete() throws {
      let status = SecItemDelete(query as CFDictionary)
      guard status == errSecSuccess || status == errSecItemNotFound else { throw failure(status) }
    }

    private func failure(_ status: OSStatus) -> ZDCError {
      ZDCError(.keyStoreFailure, detail: "status \(status)")
    }
  }
#endif
