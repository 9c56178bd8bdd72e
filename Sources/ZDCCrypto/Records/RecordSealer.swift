package import ZDCProtocol

/// The fields of a new version of a node's record, before it is sealed.
package struct RecordDraft: Sendable, Equatable {
  /// The link between the record and its parent.
  package enum ParentLink: Sendable, Equatable {
    /// Wrapped under the parent's key, tagged with its name key.
    case keys(ParentKeys)
    /// Root of a trunk: no wrap, no tag.
    case none
    /// Fields copied unchanged, because the writer has no key of the parent (Z3, Z4) or because nothing about them
    /// changed.
    case carried(keyGen: UInt32, wrap: [UInt8], nameTag: NameTag)
  }

  package var tree: TreeID
  package var node: NodeID
  package var parent: NodeID
  package var recordVersion: UInt64
  package var prevRecord: RecordHash
  package var key: NodeKey
  package var keyGen: UInt32
  package var parentLink: ParentLink
  /// The node's sealed older keys. Every put that does not rotate copies them unchanged.
  package var historyWrap: [UInt8] = []
  package var isZoneRoot = false
  package var secrets: RecordPrivate
  /// Public content fields; present if and only if `secrets.content` is.
  package var content: NodeRecord.Content?
  package var dataAuthor: NodeRecord.DataAuthor?
  package var burnMs: UInt64?
  package var writer: UserID
  package var writerGen: UInt32
  package var timeMs: UInt64

  package init(
    tree: TreeID, node: NodeID, parent: NodeID, recordVersion: UInt64 = 1, prevRecord: RecordHash = .zero,
    key: NodeKey, keyGen: UInt32 = 1, parentLink: ParentLink, secrets: RecordPrivate,
    content: NodeRecord.Content? = nil, writer: UserID, writerGen: UInt32, timeMs: UInt64
  ) {
    self.tree = tree
    self.node = node
    self.parent = parent
    self.recordVersion = recordVersion
    self.prevRecord = prevRecord
    self.key = key
    self.keyGen = keyGen
    self.parentLink = parentLink
    self.secrets = secrets
    self.content = content
    self.writer = writer
    self.writerGen = writerGen
    self.timeMs = timeMs
  }
}

/// Creates records (PROTOCOL 3.6). Each takes two seals and no public-key operation.
package enum RecordSealer {
  /// Seals a draft.
  ///
  /// - Throws: `CryptoFailure.invalidParameter` if the draft contradicts itself, `limitExceeded` if the record is too
  ///   large.
  package static func seal(_ draft: RecordDraft) throws -> NodeRecord {
    var source = SystemRandomSource()
    return try seal(draft, random: &source)
  }

  package static func seal(_ draft: RecordDraft, random: inout some RandomSource) throws -> NodeRecord {
    guard (draft.content != nil) == (draft.secrets.content != nil), draft.dataAuthor == nil || draft.content != nil
    else { throw CryptoFailure.invalidParameter }
    let link = try link(draft, random: &random)
    let record = NodeRecord(
      NodeRecord.Fields(
        tree: draft.tree, node: draft.node, parent: draft.parent, recordVersion: draft.recordVersion,
        prevRecord: draft.prevRecord, keyGen: draft.keyGen, parentKeyGen: link.keyGen, parentWrap: link.wrap,
        historyWrap: draft.historyWrap, nameTag: link.tag, isPointer: draft.secrets.pointer != nil,
        commitments: draft.isZoneRoot ? draft.key.commitments : nil, content: draft.content,
        dataAuthor: draft.dataAuthor, burnMs: draft.burnMs,
        sealedPrivate: try sealPrivate(draft, random: &random), writer: draft.writer, writerGen: draft.writerGen,
        timeMs: draft.timeMs))
    try require(record.bytes.count <= Limits.recordBytes, .limitExceeded, node: draft.node)
    return record
  }

  private static func link(
    _ draft: RecordDraft, random: inout some RandomSource
  ) throws(CryptoFailure) -> (keyGen: UInt32, wrap: [UInt8], tag: NameTag) {
    switch draft.parentLink {
    case .keys(let parent):
      let wrap = try parent.wrap(
        draft.key, tree: draft.tree, node: draft.node, keyGen: draft.keyGen, random: &random)
      return (parent.keyGen, wrap, parent.nameTag(folded: draft.secrets.name))
    case .none: return (0, [], .zero)
    case .carried(let keyGen, let wrap, let tag): return (keyGen, wrap, tag)
    }
  }

  private static func sealPrivate(_ draft: RecordDraft, random: inout some RandomSource) throws -> [UInt8] {
    let context = recordContext(
      tree: draft.tree, node: draft.node, parent: draft.parent, version: draft.recordVersion, keyGen: draft.keyGen)
    let sealed = try Seal.seal(
      key: draft.key.contentCapability.recordKey, label: "record", context: context, draft.secrets.bytes,
      random: &random)
    try require(sealed.count <= Limits.recordPrivateBytes, .limitExceeded, node: draft.node)
    return sealed
  }
}

func recordContext(tree: TreeID, node: NodeID, parent: NodeID, version: UInt64, keyGen: UInt32) -> [UInt8] {
  var context = ByteWriter(capacity: 76)
  context.append(tree)
  context.append(node)
  context.append(parent)
  context.append(version)
  context.append(keyGen)
  return context.bytes
}
