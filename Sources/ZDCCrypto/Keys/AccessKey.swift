package import ZDCProtocol

package enum AccessKeyRole {}

/// `AK`: the only secret of an account, 32 random bytes that a person keeps as 24 words (PROTOCOL 3.1).
///
/// Possession of it is full access to the account. It never leaves the user's devices; the server knows only values
/// that are derived from it here.
package struct AccessKey: Sendable, Equatable {
  private let secret: SecretKey<AccessKeyRole>

  /// Generates a new access key. Only account creation calls this.
  package static func random() -> AccessKey {
    AccessKey(secret: .random())
  }

  package static func random(_ source: inout some RandomSource) -> AccessKey {
    AccessKey(secret: .random(&source))
  }

  private init(secret: SecretKey<AccessKeyRole>) {
    self.secret = secret
  }

  /// Returns nil unless there are exactly 32 bytes.
  package init?(_ bytes: some Collection<UInt8>) {
    guard let secret = SecretKey<AccessKeyRole>(bytes) else { return nil }
    self.secret = secret
  }

  /// Decodes 24 words, spelled exactly as in the list. For typed text, see ``Mnemonic/split(typed:)``.
  package init(words: [String]) throws(MnemonicError) {
    guard let secret = SecretKey<AccessKeyRole>(try Mnemonic.decode(words)) else { throw .checksum }
    self.secret = secret
  }

  /// The 24 words. Show them to their owner only.
  package var words: [String] { Mnemonic.encode(secret.exportBytes()) }

  /// The bytes, for sealing into the local store.
  package func exportBytes() -> [UInt8] { secret.exportBytes() }

  /// The server's index for "log in with words only".
  package var lookupID: LookupID {
    let derived: SecretKey<AccessKeyRole> = secret.derive("account-lookup")
    return LookupID(derived.exportBytes().prefix(16)) ?? .zero
  }

  /// Signs login challenges; the server stores its public half.
  package var loginKey: SigningKey { SigningKey(seed: secret.derive("login-sign")) }

  /// Signs identity links and nothing else.
  package var rootKey: SigningKey { SigningKey(seed: secret.derive("root-sign")) }

  /// Seals the keyring.
  package var keyringKey: KeyringKey { secret.derive("keyring") }
}

extension AccessKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<access key>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
