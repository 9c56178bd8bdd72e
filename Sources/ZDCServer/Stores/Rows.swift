package import ZDCProtocol

/// The store's internal number for a zone.
package struct ZoneKey: Hashable, Sendable {
  package let rawValue: Int64
  package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

package struct UserRow: Sendable, Hashable {
  package var id: UserID
  package var lookup: LookupID
  package var loginKey: [UInt8]
  package var genesis: LinkHash
  package var linkSeq: UInt32
  package var linkHead: LinkHash
  package var signGen: UInt32
  package var encGen: UInt32
  /// When the owner closed the account; nil while it is open.
  package var closedMs: UInt64?
  package var createdMs: UInt64
  /// When the operator suspended the account; nil while its user may log in.
  package var suspendedMs: UInt64?
  /// The quota that the operator gave to this account, in bytes, 0 for none; nil for the server's own.
  package var quotaBytes: UInt64?

  package var isClosed: Bool { closedMs != nil }

  package init(
    id: UserID, lookup: LookupID, loginKey: [UInt8], genesis: LinkHash, linkSeq: UInt32, linkHead: LinkHash,
    signGen: UInt32, encGen: UInt32, closedMs: UInt64? = nil, createdMs: UInt64,
    suspendedMs: UInt64? = nil, quotaBytes: UInt64? = nil
  ) {
    self.id = id
    self.lookup = lookup
    self.loginKey = loginKey
    self.genesis = genesis
    self.linkSeq = linkSeq
    self.linkHead = linkHead
    self.signGen = signGen
    self.encGen = encGen
    self.closedMs = closedMs
    self.createdMs = createdMs
    self.suspendedMs = suspendedMs
    self.quotaBytes = quotaBytes
  }
}

package struct DeviceRow: Sendable, Hashable {
  package var id: DeviceID
  package var key: [UInt8]
  package var createdMs: UInt64

  package init(id: DeviceID, key: [UInt8], createdMs: UInt64) {
    self.id = id
    self.key = key
    self.createdMs = createdMs
  }
}

/// A session. The token itself is not stored, so a reader of the database cannot use the session.
package struct SessionRow: Sendable, Hashable {
  package var tokenHash: [UInt8]
  package var user: UserID
  package var device: DeviceID
  package var createdMs: UInt64
  package var expiresMs: UInt64

  package init(tokenHash: [UInt8], user: UserID, device: DeviceID, createdMs: UInt64, expiresMs: UInt64) {
    self.tokenHash = tokenHash
    self.user = user
    self.device = device
    self.createdMs = createdMs
    self.expiresMs = expiresMs
  }
}

package struct ZoneRow: Sendable {
  package var key: ZoneKey
  package var zone: ZoneID
  package var seq: UInt64
  package var head: CommitHash
  /// The access list in force.
  package var acl: [UInt8]
  package var retiredBelow: [UserID: UInt32]
  /// When the owner deleted the zone's root; nil while the zone is open. No commit follows.
  package var closedMs: UInt64?

  package init(
    key: ZoneKey, zone: ZoneID, seq: UInt64, head: CommitHash, acl: [UInt8], retiredBelow: [UserID: UInt32],
    closedMs: UInt64? = nil
  ) {
    self.closedMs = closedMs
    self.key = key
    self.zone = zone
    self.seq = seq
    self.head = head
    self.acl = acl
    self.retiredBelow = retiredBelow
  }

  package var isClosed: Bool { closedMs != nil }

  package var status: ZoneStatus { ZoneStatus(zone: zone, seq: seq, head: head) }
}

/// A zone of another user whose access list names this user.
package struct OfferedZone: Sendable {
  package var cursor: UInt64
  package var status: ZoneStatus

  package init(cursor: UInt64, status: ZoneStatus) {
    self.cursor = cursor
    self.status = status
  }
}

/// A handle of a user.
package struct HandleRow: Sendable, Hashable {
  package var handle: Handle
  /// When the user gave it up; nil while it is in force.
  package var releasedMs: UInt64?

  package init(handle: Handle, releasedMs: UInt64?) { (self.handle, self.releasedMs) = (handle, releasedMs) }
}

package struct TreeRow: Sendable, Hashable {
  package var tree: TreeID
  package var trunk: Trunk
  package var appTreeID: String

  package init(tree: TreeID, trunk: Trunk, appTreeID: String) {
    self.tree = tree
    self.trunk = trunk
    self.appTreeID = appTreeID
  }
}

/// A commit in a zone's log.
package struct StoredCommit: Sendable, Hashable {
  package var hash: CommitHash
  package var receivedMs: UInt64

  package init(hash: CommitHash, receivedMs: UInt64) {
    self.hash = hash
    self.receivedMs = receivedMs
  }
}

/// A commit of a zone's log.
package struct CommitRow: Sendable {
  package var seq: UInt64
  package var receivedMs: UInt64
  package var bytes: [UInt8]
  /// The access list that this commit introduced.
  package var acl: [UInt8]?
  /// The live records, in the order of their puts; empty if not requested.
  package var records: [StoredRecord]
  /// Live records that are left out because they do not have their hash.
  package var damaged: [RecordDamaged] = []

  package init(seq: UInt64, receivedMs: UInt64, bytes: [UInt8], acl: [UInt8]?, records: [StoredRecord] = []) {
    self.seq = seq
    self.receivedMs = receivedMs
    self.bytes = bytes
    self.acl = acl
    self.records = records
  }
}

/// A change in the number and size of a zone's nodes, records and log entries.
package struct ZoneUsage: Sendable, Hashable {
  /// Live nodes; negative after a delete.
  package var nodes: Int64 = 0
  package var records: UInt64 = 0
  package var recordBytes: UInt64 = 0
  /// Commits, access lists and grants.
  package var logBytes: UInt64 = 0

  package init(nodes: Int64 = 0) {
    self.nodes = nodes
  }

  package var bytes: UInt64 { recordBytes + logBytes }

  package mutating func add(_ other: ZoneUsage) {
    nodes += other.nodes
    records += other.records
    recordBytes += other.recordBytes
    logBytes += other.logBytes
  }

  package mutating func count(record: [UInt8]) {
    records += 1
    recordBytes += UInt64(record.count)
  }
}

package struct StoredRecord: Sendable {
  package var bytes: [UInt8]
  /// When its commit was received.
  package var recordReceivedMs: UInt64
  /// When a record first named the content; zero without content.
  package var dataReceivedMs: UInt64
  /// When a put or delete replaced the record; nil for a live one.
  package var replacedMs: UInt64?

  package init(bytes: [UInt8], recordReceivedMs: UInt64, dataReceivedMs: UInt64, replacedMs: UInt64? = nil) {
    self.bytes = bytes
    self.recordReceivedMs = recordReceivedMs
    self.dataReceivedMs = dataReceivedMs
    self.replacedMs = replacedMs
  }
}

/// A live node: its leaf, its name's tag, and the keys of its record and content.
package struct NodeRow: Sendable {
  package var leaf: LogNode
  /// Nil for a zone's root, which has no name here, and while names change inside a commit.
  package var tag: NameTag?
  package var record: Int64
  package var blob: Int64?

  package init(leaf: LogNode, tag: NameTag?, record: Int64, blob: Int64?) {
    self.leaf = leaf
    self.tag = tag
    self.record = record
    self.blob = blob
  }
}

/// Sealed content: a file in the blob store, or small content in the metadata store.
package struct BlobRow: Sendable {
  package enum State: Int64, Sendable {
    case receiving = 0, complete = 1, attached = 2
  }

  package var key: Int64
  package var id: BlobID
  package var zone: ZoneKey
  package var node: NodeID
  package var cipherLength: UInt64
  package var state: State
  package var isInline: Bool
  /// The user whose ticket it is; nil once attached.
  package var owner: UserID?
  package var contentRoot: ContentRoot?
  package var touchedMs: UInt64
  package var replacedMs: UInt64?

  package init(
    key: Int64 = 0, id: BlobID, zone: ZoneKey, node: NodeID, cipherLength: UInt64, state: State, isInline: Bool,
    owner: UserID?, contentRoot: ContentRoot?, touchedMs: UInt64, replacedMs: UInt64? = nil
  ) {
    self.key = key
    self.id = id
    self.zone = zone
    self.node = node
    self.cipherLength = cipherLength
    self.state = state
    self.isInline = isInline
    self.owner = owner
    self.contentRoot = contentRoot
    self.touchedMs = touchedMs
    self.replacedMs = replacedMs
  }

  /// Returns the row by which another node has the same content.
  package func reference(for node: NodeID, in zone: ZoneKey, now: UInt64, replacedMs: UInt64?) -> BlobRow {
    BlobRow(
      id: id, zone: zone, node: node, cipherLength: cipherLength, state: .attached, isInline: isInline, owner: nil,
      contentRoot: contentRoot, touchedMs: now, replacedMs: replacedMs)
  }

  /// Returns the row after a commit of this zone has attached it to its node. A ticket may be of another zone of the
  /// tree, because no zone had the node then.
  ///
  /// - Parameter replacedMs: set if the same commit deletes the node.
  package func attached(in zone: ZoneKey, replacedMs: UInt64?) -> BlobRow {
    var blob = self
    blob.zone = zone
    blob.state = .attached
    blob.owner = nil
    blob.replacedMs = replacedMs
    return blob
  }
}

package struct UsageRow: Sendable, Hashable {
  package var liveNodes: UInt64 = 0
  package var commits: UInt64 = 0
  package var records: UInt64 = 0
  package var recordBytes: UInt64 = 0
  package var logBytes: UInt64 = 0
  package var blobs: UInt64 = 0
  package var contentBytes: UInt64 = 0
  package var closedZones: UInt64 = 0
  /// Bytes of the unattached uploads that the user began in any zone.
  package var uploadBytes: UInt64 = 0

  package init() {}
}
