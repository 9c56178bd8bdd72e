package import ZDCProtocol

/// Content beside a message: the data of the sender's outbox node, and all that a recipient needs to open it.
///
/// It is the payload of a body of kind 3 (PROTOCOL 3.11).
package struct MessageAttachment: Sendable, Equatable {
  package let content: MessageEnvelope.Attachment
  package let secrets: ContentSecrets

  /// - Throws: `contentHeaderInvalid` or `limitExceeded` if sizes and ciphertext length contradict each other.
  package init(_ content: MessageEnvelope.Attachment, secrets: ContentSecrets) throws(ZDCSecurityError) {
    _ = try ContentReference(content: content.firstVersion, secrets: secrets)
    try require((secrets.sizes.thumbnail == 0) == (secrets.thumbnailTag == .zero), .contentHeaderInvalid)
    self.content = content
    self.secrets = secrets
  }

  init(payload: [UInt8]) throws(ZDCSecurityError) {
    var reader = ByteReader(payload)
    let content = try MessageEnvelope.Attachment(&reader)
    let secrets = try ContentSecrets(&reader)
    try reader.finish()
    try self.init(content, secrets: secrets)
  }

  package var payload: [UInt8] {
    var out = ByteWriter(capacity: 120)
    out.append(contentsOf: content.bytes)
    secrets.write(to: &out)
    return out.bytes
  }
}
