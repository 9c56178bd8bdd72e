internal import Crypto

/// A 32-byte secret with a role. The role is part of the type, so the compiler keeps node keys and content keys apart.
///
/// It is never printed: description and mirror omit the bytes. Equality takes constant time. The memory is wiped when
/// the last copy is released.
package struct SecretKey<Role>: Sendable, Equatable {
  let symmetric: SymmetricKey

  init(symmetric: SymmetricKey) {
    self.symmetric = symmetric
  }

  // The forms for arrays and slices are not generic, because a generic initializer of another module copies byte by byte.

  /// Returns nil unless there are exactly 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.init(symmetric: SymmetricKey(data: bytes))
  }

  package init?(_ bytes: ArraySlice<UInt8>) { self.init(Array(bytes)) }

  package init?(_ bytes: some Collection<UInt8>) { self.init(Array(bytes)) }

  /// A fresh key from the system's random number generator.
  package static func random() -> Self {
    var source = SystemRandomSource()
    return random(&source)
  }

  package static func random(_ source: inout some RandomSource) -> Self {
    Self(symmetric: SymmetricKey(data: source.bytes(32)))
  }

  /// Returns the raw bytes, for sealing into a store or into another object. Never log or display them.
  package func exportBytes() -> [UInt8] {
    symmetric.withUnsafeBytes { Array($0) }
  }

  /// `D(key, label)` (PROTOCOL 3.0).
  func derive<Other>(_ label: StaticString, as role: SecretKey<Other>.Type = SecretKey<Other>.self) -> SecretKey<Other>
  {
    SecretKey<Other>(symmetric: KeyDerivation.derive(symmetric, label: label))
  }
}

extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<secret>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

package enum NodeKeyRole {}
package enum ContentCapabilityRole {}
package enum ContentKeyRole {}
package enum RecordKeyRole {}
package enum ChildKeyRole {}
package enum HistoryKeyRole {}
package enum NameKeyRole {}
package enum KeyringKeyRole {}
package enum SigningSeedRole {}
package enum DecryptionSeedRole {}
package enum DatabaseKeyRole {}
package enum PassphraseKeyRole {}

/// `NK`: the capability for a node and everything below it (PROTOCOL 3.5).
package typealias NodeKey = SecretKey<NodeKeyRole>
/// `CK`: the capability for one node without its children.
package typealias ContentCapability = SecretKey<ContentCapabilityRole>
/// The key of one content blob, stored in the record's private part.
package typealias ContentKey = SecretKey<ContentKeyRole>
package typealias RecordKey = SecretKey<RecordKeyRole>
package typealias ChildKey = SecretKey<ChildKeyRole>
package typealias HistoryKey = SecretKey<HistoryKeyRole>
package typealias NameKey = SecretKey<NameKeyRole>
/// `KRK`: seals the keyring.
package typealias KeyringKey = SecretKey<KeyringKeyRole>
package typealias SigningSeed = SecretKey<SigningSeedRole>
package typealias DecryptionSeed = SecretKey<DecryptionSeedRole>
/// The key that seals the local database's values.
package typealias DatabaseKey = SecretKey<DatabaseKeyRole>
