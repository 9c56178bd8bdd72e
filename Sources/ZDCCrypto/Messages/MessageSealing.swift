package import ZDCProtocol

extension MessageEnvelope {
  /// Seals a signed body for its recipient.
  ///
  /// - Parameter encPub: the recipient's key of the generation that the body names.
  /// - Throws: `weakPublicKey` if the recipient's key is malformed.
  package init(sealing body: MessageBody, encPub: [UInt8]) throws(ZDCSecurityError) {
    let fields = body.fields
    let context = Self.context(
      id: fields.id, recipient: fields.recipient, inbox: fields.inbox, encGen: fields.recipientEncGen)
    let sealed = try Wrap.wrap(to: encPub, label: "message", context: context, plaintext: body.bytes)
    self.init(
      id: fields.id, recipient: fields.recipient, inbox: fields.inbox, recipientEncGen: fields.recipientEncGen,
      sealed: sealed, attachment: body.attachment?.content)
  }

  /// Opens the envelope. The caller then fetches the sender's chain, and checks the signature with
  /// ``MessageBody/isSigned(by:)``.
  ///
  /// - Parameters:
  ///   - user: the local user.
  ///   - inbox: the local user's inbox.
  ///   - key: the user's decryption key of the generation that the envelope names.
  /// - Throws: `messageWrongRecipient` if envelope or body are for another user, inbox or key generation,
  ///   `messageAuthFailed` if the seal does not open, or the body is another message or has other content beside it,
  ///   `unsupportedVersion` for a kind of message that this version does not know, `nonCanonicalEncoding`,
  ///   `limitExceeded`.
  package func open(user: UserID, inbox: TreeID, key: DecryptionKey) throws(ZDCSecurityError) -> MessageBody {
    try require(recipient == user && self.inbox == inbox, .messageWrongRecipient)
    let plaintext: [UInt8]
    do { plaintext = try key.unwrap(label: "message", context: context, sealed) } catch {
      throw ZDCSecurityError(.messageAuthFailed)
    }
    let body = try MessageBody(plaintext)
    let fields = body.fields
    try require(
      fields.recipient == user && fields.inbox == inbox && fields.recipientEncGen == recipientEncGen,
      .messageWrongRecipient)
    try require(fields.id == id && body.attachment?.content == attachment, .messageAuthFailed)
    return body
  }
}
