package import ZDCProtocol

/// The changes that an accepted request makes in the store: the result of ``CommitDecision``, applied in one call.
package struct CommitDelta: Sendable {
  package var zones: [ZoneDelta]
  /// Retained blobs that are deleted to make room for new ones.
  package var released: [BlobRow] = []

  package init(zones: [ZoneDelta]) {
    self.zones = zones
  }
}

/// One commit of one zone.
package struct ZoneDelta: Sendable {
  package enum Target: Sendable {
    case existing(ZoneKey)
    /// A trunk that begins with this commit.
    case new(TreeRow, owner: UserID)
    /// Another zone of a tree that exists, which begins with this commit.
    case newZone(owner: UserID)
    /// A zone that begins with a branch of another zone. The list of its nodes is stored as it is.
    case splitOff(from: ZoneKey, state: StoredState, owner: UserID)
  }

  package struct ListChange: Sendable {
    package var acl: ZoneACL
    package var grants: [Grant]
    /// Users of the list before who are not in this one.
    package var removed: Set<UserID>

    package init(acl: ZoneACL, grants: [Grant], removed: Set<UserID> = []) {
      self.acl = acl
      self.grants = grants
      self.removed = removed
    }
  }

  package var target: Target
  /// The zone's head after the commit.
  package var head: ZoneHead
  package var commit: [UInt8]
  package var receivedMs: UInt64
  /// Nil if the access list does not change.
  package var list: ListChange?
  /// In the order of the commit.
  package var puts: [NodePut] = []
  /// Existing nodes that the commit removes with their records and content.
  package var removed: [NodeRow] = []
  /// The top of the branch that the commit splits off, as this zone had it. Another delta of the request begins its zone.
  package var splitOff: NodeRow?
  package var usage = ZoneUsage()

  package init(target: Target, head: ZoneHead, commit: ZoneCommit, receivedMs: UInt64) {
    self.target = target
    self.head = head
    self.commit = commit.bytes
    self.receivedMs = receivedMs
    usage.logBytes = UInt64(commit.bytes.count)
    if case .splitOff(_, let state, _) = target { usage.logBytes += state.byteCount }
  }

  package mutating func change(to list: ListChange) {
    self.list = list
    usage.logBytes += UInt64(list.acl.bytes.count + list.grants.reduce(0) { $0 + $1.bytes.count })
  }
}

/// A state list in the parts in which a store keeps and returns it. A large list is encoded before the write.
package struct StoredState: Sendable {
  /// At most 1 MiB.
  private static let partBytes = (1 << 20) / StateList.entryBytes * StateList.entryBytes

  package let parts: [[UInt8]]

  package init(_ list: StateList) {
    let bytes = list.bytes
    parts = stride(from: 0, to: bytes.count, by: Self.partBytes).map { start in
      Array(bytes[start..<min(start + Self.partBytes, bytes.count)])
    }
  }

  package var byteCount: UInt64 { UInt64(parts.reduce(0) { $0 + $1.count }) }
}

extension ZoneDelta {
  /// Blobs that are no longer live.
  package var replacedBlobs: [Int64] { removed.compactMap(\.blob) + puts.compactMap(\.replacedBlob) }
}

/// A record that a commit puts, and the content that it names.
package struct NodePut: Sendable {
  package enum Content: Sendable {
    case none
    /// The node keeps its content, which has this number in the store.
    case unchanged(Int64)
    /// A complete upload, or content that the node had before, as the store has it.
    case attached(BlobRow)
    /// Content of another node, perhaps in another tree, which stays there. From now on both nodes have it, and neither's
    /// delete concerns the other.
    case reference(BlobRow)
    /// Small content that is new in this request.
    case inline(BlobID, ArraySlice<UInt8>)
  }

  package var leaf: LogNode
  /// Nil for a zone's root, which has no name here.
  package var tag: NameTag?
  package var record: StoredRecord
  package var content: Content
  /// The node as the store has it; nil if it is new.
  package var replaced: NodeRow?
  /// False if a later operation of the commit deletes the node: its record and content are then stored as replaced.
  package var isLive = true

  package init(leaf: LogNode, tag: NameTag?, record: StoredRecord, content: Content, replaced: NodeRow?) {
    self.leaf = leaf
    self.tag = tag
    self.record = record
    self.content = content
    self.replaced = replaced
  }
}

extension NodePut {
  package var name: NodeName? { tag.map { NodeName(parent: leaf.parent, tag: $0) } }

  package var keepsName: Bool { replaced.map { $0.tag == tag && $0.leaf.parent == leaf.parent } ?? false }

  /// Whether the put gives a node a new key, as a rotation does.
  package var isRotation: Bool { replaced.map { leaf.keyGen > $0.leaf.keyGen } ?? false }

  /// The content that this put replaces; nil if the node had none or keeps it.
  package var replacedBlob: Int64? {
    guard isLive, let old = replaced?.blob else { return nil }
    switch content {
    case .unchanged: return nil
    case .attached(let blob) where blob.key == old: return nil
    case .none, .attached, .reference, .inline: return old
    }
  }
}

/// A name below a parent. No two live nodes have the same one.
package struct NodeName: Hashable, Sendable {
  package var parent: NodeID
  package var tag: NameTag

  package init(parent: NodeID, tag: NameTag) {
    self.parent = parent
    self.tag = tag
  }
}

/// A record that a commit of the zone put on this node.
package struct RecordName: Hashable, Sendable {
  package var node: NodeID
  package var hash: RecordHash

  package init(node: NodeID, hash: RecordHash) {
    self.node = node
    self.hash = hash
  }
}

/// The content that a node's record names.
package struct ContentName: Hashable, Sendable {
  package var node: NodeID
  package var blob: BlobID

  package init(node: NodeID, blob: BlobID) {
    self.node = node
    self.blob = blob
  }
}
