internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// A change of the account's identity that the user asked for.
enum IdentityChange: Sendable, Hashable {
  case keys(areCompromised: Bool)
  case accessKey
  case closing
  /// nil gives the handle up.
  case handle(Handle?)

  var kind: IdentityLink.Kind {
    switch self {
    case .keys: .rotateKeys
    case .accessKey: .rotateRoot
    case .closing: .closed
    case .handle: .claims
    }
  }

  /// All older generations of sign and decrypt keys.
  var compromise: UInt8 { self == .keys(areCompromised: true) ? 3 : 0 }

  /// Returns whether a pending link is this change.
  func isMade(by link: IdentityLink) -> Bool {
    link.kind == kind && link.compromise == compromise && link.claims == claims
  }

  private var claims: [IdentityLink.Claim] { if case .handle(let name) = self { [.handle(name)] } else { [] } }

  /// Signs the next link of the chain.
  ///
  /// - Parameter earlier: A change of the same kind that lost against another device's link. Its keys are used again:
  ///   a server that shows its link after all would otherwise lock the user out.
  func plan(
    after row: LocalUserRow, keys: UserKeys, replacing earlier: PendingIdentityChange?, timeMs: UInt64
  ) throws -> PendingIdentityChange {
    guard let last = try IdentityChain.links(row.chain, of: row.userID).last else {
      throw ZDCSecurityError(.accountStateMissing, user: row.userID)
    }
    let earlier = earlier.flatMap { $0.link.kind == kind ? $0 : nil }
    var fields = IdentityLink.Fields(
      kind: kind, timeMs: timeMs, rootPub: last.rootPub, signPub: last.signPub, encPub: last.encPub)
    (fields.seq, fields.prev, fields.userID) = (try next(last.seq), last.hash, row.userID)
    (fields.signGen, fields.encGen, fields.compromise) = (last.signGen, last.encGen, compromise)
    (fields.keyringVersion, fields.keyringHash) = (last.keyringVersion, last.keyringHash)
    fields.claims = claims
    var change = try start(fields, last, row, keys)
    switch self {
    case .keys(let areCompromised):
      change.signingKey = earlier?.signingKey ?? .random()
      change.decryptionKey = try earlier?.decryptionKey ?? .random()
      try rotate(&fields, to: change)
      let keyring = try keys.keyring.rotated(
        to: change, signGen: fields.signGen, encGen: fields.encGen, areCompromised: areCompromised, timeMs: timeMs)
      change.keyringBlob = try keyring.seal(row.secrets.accessKey.keyringKey)
    case .accessKey:
      change.accessKey = earlier?.accessKey ?? .random()
      fields.rootPub = change.accessKey.rootKey.publicKey
      change.keyringBlob = try keys.keyring.nextVersion().seal(change.accessKey.keyringKey)
    case .closing, .handle: break
    }
    if !change.keyringBlob.isEmpty {
      (fields.keyringVersion, fields.keyringHash) = (try next(last.keyringVersion), Keyring.hash(change.keyringBlob))
    }
    change.link = try IdentityLink(
      signing: fields, root: row.secrets.accessKey.rootKey,
      newRoot: self == .accessKey ? change.accessKey.rootKey : nil, sign: change.signingKey)
    return change
  }

  /// The change before it has keys of its own.
  private func start(
    _ fields: IdentityLink.Fields, _ last: IdentityLink, _ row: LocalUserRow, _ keys: UserKeys
  ) throws -> PendingIdentityChange {
    PendingIdentityChange(
      link: last, keyringBlob: [], accessKey: row.secrets.accessKey, signingKey: keys.signingKey,
      decryptionKey: keys.decryptionKey)
  }

  private func rotate(_ fields: inout IdentityLink.Fields, to change: PendingIdentityChange) throws {
    (fields.signGen, fields.encGen) = (try next(fields.signGen), try next(fields.encGen))
    (fields.signPub, fields.encPub) = (change.signingKey.publicKey, change.decryptionKey.publicKey)
  }
}

private func next<Number: FixedWidthInteger>(_ number: Number) throws -> Number {
  let (sum, overflow) = number.addingReportingOverflow(1)
  guard !overflow else { throw ZDCSecurityError(.limitExceeded) }
  return sum
}

extension Keyring {
  fileprivate func nextVersion() throws -> Keyring {
    Keyring(version: try next(version), user: user, entries: entries)
  }

  /// Returns the next version, with new current keys. Earlier keys stay: they open what was wrapped and signed before.
  fileprivate func rotated(
    to change: PendingIdentityChange, signGen: UInt32, encGen: UInt32, areCompromised: Bool, timeMs: UInt64
  ) throws -> Keyring {
    var keyring = try nextVersion()
    for index in keyring.entries.indices {
      if areCompromised {
        keyring.entries[index].status = .compromised
      } else if keyring.entries[index].status == .current {
        keyring.entries[index].status = .retired
      }
    }
    keyring.entries += [
      Entry(signing: change.signingKey, gen: signGen, status: .current, createdMs: timeMs),
      Entry(decryption: change.decryptionKey, gen: encGen, status: .current, createdMs: timeMs),
    ]
    keyring.entries.sort { ($0.kind.rawValue, $0.gen) < ($1.kind.rawValue, $1.gen) }
    return keyring
  }
}

extension PendingIdentityChange {
  var request: AppendLinkRequest {
    let hasNewRoot = link.kind == .rotateRoot
    return AppendLinkRequest(
      link: WireBytes(link.bytes), keyring: keyringBlob.isEmpty ? nil : WireBytes(keyringBlob),
      lookupID: hasNewRoot ? accessKey.lookupID : nil,
      loginKey: hasNewRoot ? WireBytes(accessKey.loginKey.publicKey) : nil)
  }

  /// Returns whether the chain contains the link.
  func isIn(_ chain: [UInt8], of user: UserID) throws(ZDCSecurityError) -> Bool {
    let links = try IdentityChain.links(chain, of: user)
    return Int(link.seq) < links.count && links[Int(link.seq)].bytes == link.bytes
  }

  /// Returns whether the server may still accept the link: the chain ends where the link continues.
  func continues(_ chain: [UInt8], of user: UserID) throws(ZDCSecurityError) -> Bool {
    try IdentityChain.links(chain, of: user).last?.hash == link.prev
  }

  /// Applies the keys that the change introduces.
  func apply(to row: inout LocalUserRow) {
    row.secrets.accessKey = accessKey
    if !keyringBlob.isEmpty { row.secrets.keyringBlob = keyringBlob }
  }
}
