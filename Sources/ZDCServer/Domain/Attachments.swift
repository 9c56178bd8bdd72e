internal import ZDCProtocol

/// Content beside messages: that of the sender's outbox node, which has the message's ID (PROTOCOL 3.11).
enum Attachments {
  /// Returns whether the sender's outbox node has the content that an envelope names.
  static func exists(
    for envelope: MessageEnvelope, from sender: UserID, appTreeID: String, in reader: any MetadataReader
  ) throws -> Bool {
    guard let attachment = envelope.attachment else { return true }
    let outbox = TreeID.derive(owner: sender, trunk: .outbox, appTreeID: appTreeID)
    guard let node = NodeID(envelope.id.bytes) else { return false }
    let name = ContentName(node: node, blob: attachment.blobID)
    guard let blob = try reader.contents([name], in: outbox)[name], blob.node == node, blob.state == .attached,
      blob.replacedMs == nil, try reader.treeID(of: blob.zone) == outbox
    else { return false }
    return try blob.cipherLength == attachment.cipherLength && reader.contentRoot(of: blob) == attachment.contentRoot
  }

  /// Returns whether a message that waits for the user names this content of its sender's outbox.
  static func isSent(
    _ blob: BlobID, of node: NodeID, in tree: TreeID, to user: UserID, _ reader: any MetadataReader
  ) throws -> Bool {
    guard let zone = try reader.zone(ZoneID(trunkOf: tree)), let message = MessageID(node.bytes) else { return false }
    let outbox = try ZoneACL(zone.acl).fields
    guard outbox.trunk == .outbox else { return false }
    let inbox = TreeID.derive(owner: user, trunk: .inbox, appTreeID: outbox.appTreeID)
    guard let mailbox = try reader.zone(ZoneID(trunkOf: inbox)),
      let envelope = try reader.envelope(message, from: outbox.owner, in: mailbox.key)
    else { return false }
    return try MessageEnvelope(envelope).attachment?.blobID == blob
  }
}

extension MetadataReader {
  /// Returns the root of attached content. That of small content is not stored.
  func contentRoot(of blob: BlobRow) throws -> ContentRoot? {
    guard blob.isInline else { return blob.contentRoot }
    return try inlineBytes(of: blob).map { ContentRoot(reinterpreting: MerkleTree.leafHash($0)) }
  }
}
