package import ZDCCrypto
package import ZDCProtocol

extension NodeRow {
  /// The row of a node that was just discovered, where the cloud has it.
  package init(
    _ opened: OpenedRecord, _ item: PageContents.Record, uuid: String, zone: Int64, parent: Int64?, depth: Int
  ) {
    let fields = opened.record.fields
    self.init(
      uuid: uuid, zone: zone, nodeID: fields.node, parent: parent, depth: depth, nameTag: fields.nameTag,
      name: opened.secrets.name, key: opened.key, keyGen: fields.keyGen, createdMs: opened.secrets.createdMs)
    absorb(opened, item)
  }

  /// Takes over what the cloud says; place and name stay as the app sees them, and a burn date that the app has changed.
  package mutating func absorb(_ opened: OpenedRecord, _ item: PageContents.Record) {
    let fields = opened.record.fields
    key = opened.key
    keyGen = fields.keyGen
    historyWrap = fields.historyWrap
    createdMs = opened.secrets.createdMs
    unused = opened.secrets.unused
    quarantine = nil
    absorbPublic(item, name: opened.secrets.name)
    guard let content = fields.content, let secrets = opened.secrets.content else {
      self.content = nil
      return
    }
    self.content = RemoteContent(
      content: content, secrets: secrets, writer: fields.dataAuthor?.writer ?? fields.writer,
      timeMs: fields.dataAuthor?.timeMs ?? fields.timeMs, receivedMs: item.dataReceivedMs)
  }

  /// The private part of the next version, without what is new in that.
  package func secrets(content: ContentSecrets?) -> RecordPrivate {
    var secrets = unused ?? RecordPrivate(name: nil, createdMs: createdMs)
    (secrets.name, secrets.createdMs, secrets.content) = (name, createdMs, content)
    return secrets
  }

  /// Everything but keys and content.
  package mutating func absorbPublic(_ item: PageContents.Record, name: [UInt8]) {
    let fields = item.record.fields
    if !isBurnDateChanged { burnMs = fields.burnMs }
    cloud = RemoteState(
      recordVersion: fields.recordVersion, recordHash: item.record.hash, parent: fields.parent,
      name: name, nameTag: fields.nameTag, writer: fields.writer, receivedMs: item.receivedMs, burnMs: fields.burnMs)
  }
}

extension RecordPrivate {
  /// The fields that this client does not use; nil without any.
  fileprivate var unused: RecordPrivate? {
    let isMessage = !recipients.isEmpty || !served.isEmpty || sendingDevice != nil || received != nil || isRead
    guard isMessage || pointer != nil || movedFrom != nil || !unknownExtras.isEmpty else { return nil }
    var unused = self
    (unused.name, unused.createdMs, unused.content) = ([], 0, nil)
    return unused
  }
}
