package import ZDCProtocol

extension Keyring {
  /// `H("keyring-blob", blob)`, the hash that the newest identity link states.
  package static func hash(_ blob: [UInt8]) -> KeyringHash {
    KeyringHash(labelledHash: "keyring-blob", blob)
  }

  /// Seals the keyring for the server.
  ///
  /// - Throws: `CryptoFailure.invalidParameter` unless the entries are sorted and exactly one of each kind is current.
  package func seal(_ key: KeyringKey) throws(CryptoFailure) -> [UInt8] {
    var source = SystemRandomSource()
    return try seal(key, random: &source)
  }

  package func seal(_ key: KeyringKey, random: inout some RandomSource) throws(CryptoFailure) -> [UInt8] {
    let plaintext = bytes
    guard (try? Keyring(plaintext)) == self else { throw .invalidParameter }
    return try Seal.seal(
      key: key, label: "keyring", context: Self.context(user, version), plaintext, random: &random)
  }

  /// Opens a keyring and compares it with the user's verified chain.
  ///
  /// - Parameter pinnedVersion: The newest version that this device has seen.
  /// - Throws: `keyringRollback` for an older version, `keyringAuthFailed` if it does not open, `keyringMismatch` if it
  ///   opens but is not the one that the chain names.
  package static func open(
    _ blob: [UInt8], key: KeyringKey, identity: VerifiedIdentity, pinnedVersion: UInt64 = 0
  ) throws(ZDCSecurityError) -> Keyring {
    do throws(ZDCSecurityError) {
      try require(identity.keyringVersion >= pinnedVersion, .keyringRollback)
      try require(blob.count <= Limits.keyringBytes, .limitExceeded)
      let keyring = try open(blob, key: key, identity)
      try require(hash(blob) == identity.keyringHash, .keyringMismatch)
      try keyring.check(identity)
      return keyring
    } catch { throw error.with(user: identity.userID) }
  }

  private static func open(
    _ blob: [UInt8], key: KeyringKey, _ identity: VerifiedIdentity
  ) throws(ZDCSecurityError) -> Keyring {
    guard let plaintext = tryOpen(blob, key, identity.userID, identity.keyringVersion) else {
      throw ZDCSecurityError(isOlder(blob, key, identity) ? .keyringRollback : .keyringAuthFailed)
    }
    do throws(ZDCSecurityError) {
      return try Keyring(plaintext)
    } catch { throw ZDCSecurityError(.keyringMismatch) }
  }

  private static func tryOpen(_ blob: [UInt8], _ key: KeyringKey, _ user: UserID, _ version: UInt64) -> [UInt8]? {
    try? Seal.open(key: key, label: "keyring", context: context(user, version), blob)
  }

  /// Returns whether the blob is an older keyring. The version is in the context of the seal, so an older keyring opens
  /// under an older number.
  private static func isOlder(_ blob: [UInt8], _ key: KeyringKey, _ identity: VerifiedIdentity) -> Bool {
    let newest = identity.keyringVersion
    let oldest = newest > 64 ? newest - 64 : 0
    return (oldest..<newest).contains { tryOpen(blob, key, identity.userID, $0) != nil }
  }

  /// Checks the keyring against the verified chain. Public keys are always derived again and compared, because the
  /// stored seed is not trusted (SECURITY A5).
  private func check(_ identity: VerifiedIdentity) throws(ZDCSecurityError) {
    let isNamed = version == identity.keyringVersion && user == identity.userID
    try require(isNamed, .keyringMismatch)
    for entry in entries {
      let isCurrent = entry.gen == (entry.kind == .sign ? identity.signGen : identity.encGen)
      let stated = entry.kind == .sign ? identity.signKeys[entry.gen] : identity.encKeys[entry.gen]
      let derived = try? publicKey(entry)
      try require(derived != nil && derived == stated, .keyringMismatch)
      try require(isCurrent == (entry.status == .current), .keyringMismatch)
    }
  }

  private func publicKey(_ entry: Entry) throws(CryptoFailure) -> [UInt8]? {
    switch entry.kind {
    case .sign: signingKey(gen: entry.gen)?.publicKey
    case .encrypt: try decryptionKey(gen: entry.gen)?.publicKey
    }
  }

  private static func context(_ user: UserID, _ version: UInt64) -> [UInt8] {
    var context = ByteWriter(capacity: 40)
    context.append(user)
    context.append(version)
    return context.bytes
  }
}
