internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Opens the envelopes of known senders: unseals them, and checks their signatures with the keys of verified chains.
///
/// Messages under a key that its sender has declared compromised are held back: anyone with the key may have written
/// them. The user decides about them as about messages of unknown senders.
struct MessageOpener: Sendable {
  let session: SyncSession
  let inbox: InboxWriter

  struct Opened: Sendable {
    var messages: [MessageBody] = []
    /// Messages that do not open.
    var refused: Set<MessageName> = []
    /// Messages that may open after the next pull, because a key or a sender's chain is missing, and messages that are
    /// held back.
    var skipped: Set<MessageName> = []
  }

  private typealias Unsealed = (name: MessageName, body: MessageBody)

  func open(_ envelopes: [(name: MessageName, envelope: MessageEnvelope)]) async throws -> Opened {
    var opened = Opened()
    let unsealed = try await unseal(envelopes, &opened)
    guard !unsealed.isEmpty else { return opened }
    let verified = try await verify(unsealed, &opened)
    let held = try await hold(verified)
    opened.skipped.formUnion(held)
    opened.messages = verified.filter { !held.contains($0.name) }.map(\.body)
    return opened
  }

  private func unseal(
    _ envelopes: [(name: MessageName, envelope: MessageEnvelope)], _ opened: inout Opened
  ) async throws -> [Unsealed] {
    var unsealed: [Unsealed] = []
    for (name, envelope) in envelopes {
      do {
        if let body = try unseal(envelope, from: name.sender) {
          unsealed.append((name, body))
        } else {
          opened.skipped.insert(name)
        }
      } catch let error as ZDCSecurityError {
        opened.refused.insert(name)
        try await report(error.with(user: name.sender))
      }
    }
    return unsealed
  }

  /// - Returns: Nil if this device has no key of that generation: it reads its own chain again with the next pull.
  private func unseal(_ envelope: MessageEnvelope, from sender: UserID) throws -> MessageBody? {
    guard let key = try session.keys.decryptionKey(gen: envelope.recipientEncGen) else { return nil }
    let body = try envelope.open(user: session.user, inbox: inbox.tree, key: key)
    try require(body.fields.sender == sender, .messageAuthFailed)
    return body
  }

  private func verify(_ unsealed: [Unsealed], _ opened: inout Opened) async throws -> [Unsealed] {
    // The receiver has just asked for new links of these chains.
    let keys = try await session.identities.pinnedKeys(of: Set(unsealed.map(\.body.signer)), own: session.keys)
    var verified: [Unsealed] = []
    for (name, body) in unsealed {
      let signer = body.signer
      guard let key = try keys.signKey(user: signer.user, generation: signer.generation) else {
        try await report(ZDCSecurityError(.writerUnknown, user: name.sender))
        opened.skipped.insert(name)
        continue
      }
      if body.isSigned(by: key) {
        verified.append((name, body))
      } else {
        opened.refused.insert(name)
        try await report(ZDCSecurityError(.messageAuthFailed, user: name.sender))
      }
    }
    return verified
  }

  /// Returns the messages under compromised keys, without those that the user has accepted.
  private func hold(_ messages: [Unsealed]) async throws -> Set<MessageName> {
    let compromised = try await session.identities.compromised(among: Set(messages.map(\.body.signer)))
    let suspect = Set(messages.filter { compromised.contains($0.body.signer) }.map(\.name))
    guard !suspect.isEmpty else { return [] }
    return try await session.database.asyncReadWrite { [zone = inbox.row.id] transaction in
      let store = HeldMessageStore(transaction, inbox: zone)
      try store.hold(suspect)
      let known = try store.all()
      return suspect.filter { known[$0] == false }
    }
  }

  func report(_ error: ZDCSecurityError) async throws {
    session.events.report(error)
    try await session.database.asyncReadWrite { [session, zone = inbox.row.id] transaction in
      try transaction.record(error, localUser: session.localUser, zone: zone, atMs: session.now())
    }
  }
}

extension MessageBody {
  fileprivate var signer: Signer { Signer(user: fields.sender, generation: fields.senderGen) }
}
