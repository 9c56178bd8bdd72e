package import ZDCProtocol

/// A record that passed all checks that need keys.
package struct OpenedRecord: Sendable {
  package let record: NodeRecord
  package let key: NodeKey
  package let secrets: RecordPrivate
  /// The layout of the content's sections; nil without content.
  package let layout: ContentLayout?

  package var name: String { String(decoding: secrets.name, as: UTF8.self) }

  /// The fields that opening this node's content needs; nil without content.
  package var contentReference: ContentReference? {
    guard let content = record.fields.content, let secrets = secrets.content, let layout else { return nil }
    return ContentReference(content: content, secrets: secrets, layout: layout)
  }

  /// The keys for this node's children, at the node's newest generation.
  package var parentKeys: ParentKeys { ParentKeys(key, keyGen: record.fields.keyGen) }

  /// Returns the node's older keys, for children that are not re-keyed yet. Empty for a zone's root, whose access list
  /// has them.
  package func history() throws(ZDCSecurityError) -> KeyHistory {
    try KeyHistory(
      opening: record.fields.historyWrap, tree: record.fields.tree, node: record.fields.node, key: key,
      keyGen: record.fields.keyGen)
  }
}

/// Opens records: the checks of PROTOCOL 3.6 that need keys, in order.
///
/// Size, format, binding, hash, versions and fields were checked before, against the verified log (`RecordRules`). A
/// failure here quarantines the node (class 2 of PROTOCOL 3.7).
package enum RecordOpener {
  /// Opens an ordinary node below a parent, with the parent's keys of generation `parentKeyGen`.
  package static func open(_ record: NodeRecord, parent: ParentKeys) throws(ZDCSecurityError) -> OpenedRecord {
    let fields = record.fields
    try require(fields.parentKeyGen == parent.keyGen, .staleKeyGeneration, node: fields.node)
    let key = try parent.unwrap(fields.parentWrap, tree: fields.tree, node: fields.node, keyGen: fields.keyGen)
    if let stated = fields.commitments {
      try require(stated == key.commitments, .keyCommitmentMismatch, node: fields.node)
    }
    return try open(record, key: key, tagKeys: parent)
  }

  /// Opens an ordinary node with its known key, when its parent's keys are not available. Its name tag cannot be
  /// checked then.
  package static func open(_ record: NodeRecord, key: NodeKey) throws(ZDCSecurityError) -> OpenedRecord {
    try open(record, key: key, tagKeys: nil)
  }

  /// Opens the root of a zone with the zone's key, which came from a grant.
  ///
  /// - Parameters:
  ///   - commitments: The commitments in the zone's access list.
  ///   - parent: The parent's keys, if the reader is a member there too. Without them, the name tag cannot be checked.
  package static func open(
    zoneRoot record: NodeRecord, key: NodeKey, commitments: NodeRecord.ZoneCommitments, parent: ParentKeys? = nil
  ) throws(ZDCSecurityError) -> OpenedRecord {
    let fields = record.fields
    let isCommitted = fields.commitments == commitments && key.commitments == commitments
    try require(isCommitted, .keyCommitmentMismatch, node: fields.node)
    // The access list has the old keys of a zone.
    try require(fields.historyWrap.isEmpty, .recordBindingMismatch, node: fields.node)
    let opened = try open(record, key: key, tagKeys: parent)
    if fields.parent == .zero { try checkTrunkRoot(opened) }
    return opened
  }

  /// Opens only the private part, with the capability of this one node.
  package static func openPrivate(
    _ record: NodeRecord, capability: ContentCapability
  ) throws(ZDCSecurityError) -> RecordPrivate {
    let fields = record.fields
    let context = recordContext(
      tree: fields.tree, node: fields.node, parent: fields.parent, version: fields.recordVersion,
      keyGen: fields.keyGen)
    let plaintext: [UInt8]
    do throws(ZDCSecurityError) {
      plaintext = try Seal.open(key: capability.recordKey, label: "record", context: context, fields.sealedPrivate)
    } catch { throw ZDCSecurityError(.recordAuthFailed, node: fields.node) }
    do throws(ZDCSecurityError) {
      return try RecordPrivate(plaintext, hasContent: fields.content != nil)
    } catch { throw error.with(node: fields.node) }
  }

  /// Returns whether a key opens anything of a record: as a key of its node, or as a key of the node's parent.
  package static func isOpened(_ record: NodeRecord, by key: NodeKey) -> Bool {
    let fields = record.fields
    let context = recordContext(
      tree: fields.tree, node: fields.node, parent: fields.parent, version: fields.recordVersion,
      keyGen: fields.keyGen)
    let recordKey = key.contentCapability.recordKey
    if (try? Seal.open(key: recordKey, label: "record", context: context, fields.sealedPrivate)) != nil { return true }
    let parent = ParentKeys(key, keyGen: fields.parentKeyGen)
    let wrapped = try? parent.unwrap(fields.parentWrap, tree: fields.tree, node: fields.node, keyGen: fields.keyGen)
    if wrapped != nil { return true }
    let history = try? KeyHistory(
      opening: fields.historyWrap, tree: fields.tree, node: fields.node, key: key, keyGen: fields.keyGen)
    return history.map { !$0.entries.isEmpty } ?? false
  }

  private static func open(
    _ record: NodeRecord, key: NodeKey, tagKeys: ParentKeys?
  ) throws(ZDCSecurityError) -> OpenedRecord {
    let fields = record.fields
    let secrets = try openPrivate(record, capability: key.contentCapability)
    if fields.parent != .zero { try checkName(secrets.name, node: fields.node) }
    if let tagKeys {
      try require(tagKeys.nameTag(folded: secrets.name) == fields.nameTag, .nameTagMismatch, node: fields.node)
    }
    try checkPointer(fields, secrets)
    // A message that was moved to another zone has another node there.
    let isInPlace = secrets.received.map { $0.node == fields.node || secrets.movedFrom != nil } ?? true
    try require(isInPlace, .recordBindingMismatch, node: fields.node)
    try checkProfile(fields, secrets)
    let layout = try checkContent(fields, secrets)
    let opened = OpenedRecord(record: record, key: key, secrets: secrets, layout: layout)
    // A history that does not open would be copied into the next version of the node.
    _ = try opened.history()
    return opened
  }

  /// Checks that a profile says whose it is, and is all that the record has.
  private static func checkProfile(_ fields: NodeRecord.Fields, _ secrets: RecordPrivate) throws(ZDCSecurityError) {
    guard secrets.profile != nil else { return }
    let isAlone = secrets.received != nil && secrets.pointer == nil && fields.content == nil
    try require(isAlone, .recordBindingMismatch, node: fields.node)
  }

  private static func checkName(_ name: [UInt8], node: NodeID) throws(ZDCSecurityError) {
    let isName = !name.isEmpty && !name.contains(0) && String(validating: name, as: UTF8.self) != nil
    try require(isName, .nonCanonicalEncoding, node: node)
  }

  private static func checkTrunkRoot(_ opened: OpenedRecord) throws(ZDCSecurityError) {
    let fields = opened.record.fields
    let isBare =
      opened.secrets.name.isEmpty && fields.nameTag == .zero && fields.parentKeyGen == 0
      && fields.parentWrap.isEmpty && !fields.isPointer
    try require(isBare, .recordBindingMismatch, node: fields.node)
  }

  /// Checks that the public and private parts agree on whether this is a pointer, and that a pointer has no content.
  private static func checkPointer(_ fields: NodeRecord.Fields, _ secrets: RecordPrivate) throws(ZDCSecurityError) {
    let agrees = fields.isPointer == (secrets.pointer != nil) && !(fields.isPointer && fields.content != nil)
    try require(agrees, .recordBindingMismatch, node: fields.node)
  }

  private static func checkContent(
    _ fields: NodeRecord.Fields, _ secrets: RecordPrivate
  ) throws(ZDCSecurityError) -> ContentLayout? {
    guard let content = fields.content, let inner = secrets.content else { return nil }
    do throws(ZDCSecurityError) {
      let layout = try ContentLayout(sizes: inner.sizes, cipherLength: content.cipherLength)
      try require((inner.sizes.thumbnail == 0) == (inner.thumbnailTag == .zero), .contentHeaderInvalid)
      return layout
    } catch { throw error.with(node: fields.node) }
  }
}
