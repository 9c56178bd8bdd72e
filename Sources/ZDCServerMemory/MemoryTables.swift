internal import ZDCProtocol
internal import ZDCServer

/// The store's entire state: a value type, so that a failed write is simply discarded.
struct MemoryTables: Sendable {
  struct Tree {
    var row: TreeRow
    var owner: UserID
    /// Of all zones together: a split moves nodes between them and counts none.
    var usage = ZoneUsage()
  }

  struct Zone {
    var row: ZoneRow
    var owner: UserID
    var log: [Commit] = []
    var members = MemberTable()
    var grants: [GrantKey: [UInt8]] = [:]
    /// The parts of the list with which the zone began; empty for one that was not split off.
    var state: [[UInt8]] = []

    var feedPosition: UInt64 { log.last?.feedPosition ?? 0 }
  }

  struct Commit {
    var row: CommitRow
    var hash: CommitHash
    var feedPosition: UInt64
    var records: [Int64]
  }

  struct GrantKey: Hashable {
    var user: UserID
    var hash: GrantHash
  }

  struct Membership {
    var row: MembershipRow
    var mark: MembershipMark
  }

  /// A live node's row, and the zone whose commit put it.
  struct Node {
    var row: NodeRow
    var zone: ZoneKey
  }

  /// The live nodes of a tree, shared by its zones.
  struct Nodes {
    var all: [NodeID: Node] = [:]
    var children: [NodeID: Set<NodeID>] = [:]
    var names: [NodeName: NodeID] = [:]
  }

  struct Record {
    var stored: StoredRecord
    var name: RecordName
    /// The zone whose commit put the record; for a replaced one the zone that it was replaced in.
    var zone: ZoneKey
    var replacedMs: UInt64?
  }

  struct Blob {
    var row: BlobRow
    var content: [UInt8]?
    var parts: [Int: [UInt8]] = [:]
  }

  var users: [UserID: UserRow] = [:]
  var links: [UserID: [[UInt8]]] = [:]
  var signKeys: [UserID: [UInt32: [UInt8]]] = [:]
  var keyrings: [UserID: [UInt8]] = [:]
  var invites: Set<[UInt8]> = []
  var handles: [Handle: (user: UserID, releasedMs: UInt64?)] = [:]
  var devices: [UserID: [DeviceID: DeviceRow]] = [:]
  var sessions: [[UInt8]: SessionRow] = [:]
  var trees: [TreeID: Tree] = [:]
  var zones: [ZoneKey: Zone] = [:]
  var zoneKeys: [ZoneID: ZoneKey] = [:]
  var memberships: [UserID: [ZoneKey: Membership]] = [:]
  var inboxes: [ZoneKey: MemoryInbox] = [:]
  var nodes: [TreeID: Nodes] = [:]
  var records: [Int64: Record] = [:]
  var recordKeys: [RecordName: [Int64]] = [:]
  var blobs: [Int64: Blob] = [:]
  /// Tickets and large blobs, which several nodes may have.
  var files: [BlobID: [Int64]] = [:]
  var smallContents: [ContentName: [Int64]] = [:]
  /// Closed zones that still have nodes.
  var closing: [ZoneKey] = []
  var lastFeedPosition: UInt64 = 0
  private var lastKey: Int64 = 0

  mutating func newKey() -> Int64 {
    lastKey += 1
    return lastKey
  }
}
