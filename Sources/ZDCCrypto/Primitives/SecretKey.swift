internal import Crypto

/// A 32-byte secret with a role. The role is part of the type, so the compiler keeps node keys and content keys apart.
///
/// It is never printed: description and mirror omit the bytes. Equality takes constant time. The memory is wiped when
/// the last copy is released.
public struct SecretKey<Role>: Sendable, Equatable {
  let symmetric: SymmetricKey

  init(symmetric: SymmetricKey) {
    self.symmetric = symmetric
  }

  /// Returns nil unless there are exactly 32 bytes.
  public init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 32 else { return nil }
    self.init(symmetric: SymmetricKey(data: Array(bytes)))
  }

  /// A fresh key from the system's random number generator.
  public static func random() -> Self {
    var source = SystemRandomSource()
    return random(&source)
  }

  package static func random(_ source: inout some RandomSource) -> Self {
    Self(symmetric: SymmetricKey(data: source.bytes(32)))
  }

  /// Returns the raw bytes, for sealing into a store or into another object. Never log or display them.
  public func exportBytes() -> [UInt8] {
    symmetric.withUnsafeBytes { Array($0) }
  }

  /// `D(key, label)` (PROTOCOL 3.0).
  func derive<Other>(_ label: StaticString, as role: SecretKey<Other>.Type = SecretKey<Other>.self) -> SecretKey<Other>
  {
    SecretKey<Other>(symmetric: KeyDerivation.derive(symmetric, label: label))
  }
}

extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "<secret>" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

public enum NodeKeyRole {}
public enum ContentCapabilityRole {}
public enum ContentKeyRole {}
public enum RecordKeyRole {}
public enum ChildKeyRole {}
public enum HistoryKeyRole {}
public enum NameKeyRole {}
public enum KeyringKeyRole {}
public enum SigningSeedRole {}
public enum DecryptionSeedRole {}
public enum DatabaseKeyRole {}
public enum PassphraseKeyRole {}

/// `NK`: the capability for a node and everything below it (PROTOCOL 3.5).
public typealias NodeKey = SecretKey<NodeKeyRole>
/// `CK`: the capability for one node without its children.
public typealias ContentCapability = SecretKey<ContentCapabilityRole>
/// The key of one content blob, stored in the record's private part.
public typealias ContentKey = SecretKey<ContentKeyRole>
public typealias RecordKey = SecretKey<RecordKeyRole>
public typealias ChildKey = SecretKey<ChildKeyRole>
public typealias HistoryKey = SecretKey<HistoryKeyRole>
public typealias NameKey = SecretKey<NameKeyRole>
/// `KRK`: seals the keyring.
public typealias KeyringKey = SecretKey<KeyringKeyRole>
public typealias SigningSeed = SecretKey<SigningSeedRole>
public typealias DecryptionSeed = SecretKey<DecryptionSeedRole>
/// The key that seals the local database's values.
public typealias DatabaseKey = SecretKey<DatabaseKeyRole>
