package import ZDCCrypto
package import ZDCProtocol
package import ZDCSupport

/// A node as this device has it: place and name as the app sees them, and the newest version in the cloud that is
/// known.
package struct NodeRow: Sendable {
  /// The row's number; 0 until the row is inserted.
  package var id: Int64 = 0
  package let uuid: String
  package var zone: Int64
  package var nodeID: NodeID
  /// The parent's row; nil for the root of a trunk.
  package var parent: Int64?
  /// Distance from the trunk's root.
  package var depth: Int
  package var nameTag: NameTag
  /// Folded UTF-8; empty for the root of a trunk.
  package var name: [UInt8]
  package var key: NodeKey {
    didSet { if key != oldValue { firstKey = firstKey ?? oldValue } }
  }
  /// The first key that this device has had for the node, if it has another one now. The local tree finds children by tags
  /// under this key, so that a new key changes no row of a child, of which there may be a hundred thousand.
  package internal(set) var firstKey: NodeKey?
  package var keyGen: UInt32
  package var historyWrap: [UInt8] = []
  package var createdMs: UInt64
  package var burnMs: UInt64?
  package var cloud: RemoteState?
  package var content: RemoteContent?
  /// Why the newest version in the cloud could not be opened (class 2 of PROTOCOL 3.7); the last good one is shown.
  package var quarantine: String?
  /// Fields of the record's private part that this client does not use. Every next version keeps them.
  @Boxed package var unused: RecordPrivate?

  package init(
    id: Int64 = 0, uuid: String, zone: Int64, nodeID: NodeID, parent: Int64? = nil, depth: Int, nameTag: NameTag,
    name: [UInt8], key: NodeKey, keyGen: UInt32, historyWrap: [UInt8] = [], createdMs: UInt64, burnMs: UInt64? = nil,
    cloud: RemoteState? = nil, content: RemoteContent? = nil, quarantine: String? = nil, unused: RecordPrivate? = nil
  ) {
    self.id = id
    self.uuid = uuid
    self.zone = zone
    self.nodeID = nodeID
    self.parent = parent
    self.depth = depth
    self.nameTag = nameTag
    self.name = name
    self.key = key
    self.keyGen = keyGen
    self.historyWrap = historyWrap
    self.createdMs = createdMs
    self.burnMs = burnMs
    self.cloud = cloud
    self.content = content
    self.quarantine = quarantine
    self.unused = unused
  }

  package var isUploaded: Bool { cloud != nil }

  /// The name that the node has in the cloud, or gets there first.
  package var nameInCloud: [UInt8] { cloud?.name ?? name }

  /// Whether the app has changed the burn date, and the cloud does not have that yet.
  package var isBurnDateChanged: Bool { burnMs != cloud?.burnMs }

  /// Where the node points to, if it is a pointer.
  package var pointer: PointerTarget? { unused?.pointer }

  /// Whether it is as `createNode` makes it: nothing in the cloud, nothing from there.
  package var isFresh: Bool {
    cloud == nil && content == nil && historyWrap.isEmpty && quarantine == nil && unused == nil
  }

  /// The state of the server's copy of the record.
  package struct RemoteState: Sendable, Hashable {
    package var recordVersion: UInt64
    package var recordHash: RecordHash
    package var parent: NodeID
    /// The name there; the row's own is what the app sees.
    package var name: [UInt8]
    package var nameTag: NameTag
    package var writer: UserID
    package var receivedMs: UInt64
    /// The burn date there; the row's own is what the app sees.
    package var burnMs: UInt64?

    package init(
      recordVersion: UInt64, recordHash: RecordHash, parent: NodeID, name: [UInt8], nameTag: NameTag, writer: UserID,
      receivedMs: UInt64, burnMs: UInt64? = nil
    ) {
      self.recordVersion = recordVersion
      self.recordHash = recordHash
      self.parent = parent
      self.name = name
      self.nameTag = nameTag
      self.writer = writer
      self.receivedMs = receivedMs
      self.burnMs = burnMs
    }
  }

  /// The content of the newest version in the cloud.
  package struct RemoteContent: Sendable {
    package var content: NodeRecord.Content
    package var secrets: ContentSecrets
    /// The user who put it, and the time by that device's clock.
    package var writer: UserID
    package var timeMs: UInt64
    package var receivedMs: UInt64

    package init(
      content: NodeRecord.Content, secrets: ContentSecrets, writer: UserID, timeMs: UInt64, receivedMs: UInt64
    ) {
      self.content = content
      self.secrets = secrets
      self.writer = writer
      self.timeMs = timeMs
      self.receivedMs = receivedMs
    }
  }
}

extension NodeRow {
  /// The keys for this node's children.
  package var parentKeys: ParentKeys { ParentKeys(key, keyGen: keyGen) }
}
