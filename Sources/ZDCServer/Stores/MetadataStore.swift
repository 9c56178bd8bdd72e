package import ZDCProtocol

/// Where the server keeps everything but large content: accounts, sessions, logs, records, small content.
///
/// Contract, the same for every store (`StoreContractTests` and `StoreCommitTests` test it):
/// - `read` sees one consistent state.
/// - A `write` names the subjects that it changes. Two writes that share one run one after the other, and what a closure
///   reads of its subjects stays as it is until its changes are made. Its changes are durable when the call returns, and
///   gone if the closure throws. Concurrent writes may share one durable step; each still succeeds or fails alone.
/// - Both closures are synchronous: a suspension inside would hold what the others wait for.
/// - Questions about many nodes, records or contents take a list: each question may be a round trip to a database.
package protocol MetadataStore: Sendable {
  /// - Parameter subjects: those that the closure changes. A store with one writer for everything need not look at them.
  func write<T: Sendable>(
    _ subjects: Set<WriteSubject>, _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
  ) async throws -> T
  func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T
  /// Brings the store's files into their smallest form. Called when the server is idle.
  func tidy() async throws
  /// Flushes and closes. No call may follow.
  func close() async throws
  /// How often and for how long writes waited; for `/metrics`.
  var writeStatistics: WriteStatistics { get }
}

/// A part of the store that one write at a time changes.
///
/// Kept content belongs to none of them: a write that needs its room removes it from any zone of the owner, and a store
/// with several writers leaves what another one has attached again.
package enum WriteSubject: Sendable, Hashable {
  /// The user's row, identity chain, keyring, devices, sessions and trees.
  case account(UserID)
  /// The zone's log, nodes, records and live content.
  case zone(ZoneID)
  /// An upload, from its ticket until a commit attaches it.
  case upload(BlobID)
  /// Everything that is removed because of its age, and the probe of free space.
  case upkeep
}

package struct WriteStatistics: Sendable, Hashable {
  package var writes: UInt64 = 0
  /// Durable steps; fewer than `writes` when writes were grouped.
  package var groups: UInt64 = 0
  package var waitedSeconds: Double = 0

  package init() {}
}

/// A consistent view of the store, valid inside one closure.
package protocol MetadataReader: AnyObject {
  // Accounts
  func user(_ id: UserID) throws -> UserRow?
  func user(lookup: LookupID) throws -> UserRow?
  func links(of user: UserID) throws -> [[UInt8]]
  /// The links of several users in the order asked, all of a user or none: it ends in front of the user with whose links
  /// there would be more than `limit` bytes, and has those of the first one who has any in any case.
  func links(after positions: [ChainPosition], limit: Int) throws -> [[UInt8]]
  func link(_ seq: UInt32, of user: UserID) throws -> [UInt8]?
  /// The length of all links together.
  func chainBytes(of user: UserID) throws -> Int
  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]?
  func keyring(of user: UserID) throws -> [UInt8]?
  func isInviteUsed(_ codeHash: [UInt8]) throws -> Bool

  // Devices and sessions
  func device(_ id: DeviceID, of user: UserID) throws -> DeviceRow?
  func devices(of user: UserID) throws -> [DeviceRow]
  func session(tokenHash: [UInt8]) throws -> SessionRow?
  func sessions(of user: UserID) throws -> [SessionRow]

  // Zones
  func zone(_ id: ZoneID) throws -> ZoneRow?
  /// Zones of the user's own trees that have changed since, and the position up to which the list has all changes.
  ///
  /// A position that this store has not given, or does not know any more because it was restored from a backup, counts
  /// as none: then the list has all zones.
  func zones(
    ownedBy user: UserID, since position: FeedPosition?
  ) throws -> (zones: [ZoneStatus], position: FeedPosition)
  /// Zones of other users that the user may read, in the order of their cursors.
  func zones(offeredTo user: UserID, after cursor: UInt64, limit: Int) throws -> [OfferedZone]
  func permissions(of user: UserID, in zone: ZoneKey) throws -> ZoneACL.Permissions?
  func genesisCommits(owner: UserID, appTreeID: String) throws -> [CommitHash]
  func trees(of owner: UserID) throws -> [TreeRow]
  func treeID(of zone: ZoneKey) throws -> TreeID?
  /// When the newest commit was received; nil without any.
  func lastReceivedMs() throws -> UInt64?

  // Logs
  func commit(_ seq: UInt64, of zone: ZoneKey) throws -> StoredCommit?
  /// Calls `body` with commits behind `after` (nil: from genesis) in order, until it answers false.
  ///
  /// - Parameter withRecords: with the records that came with each and that no later put or delete replaced.
  func commits(
    of zone: ZoneKey, after: UInt64?, withRecords: Bool, _ body: (CommitRow) throws -> Bool
  ) throws
  func grant(zone: ZoneKey, user: UserID, hash: GrantHash) throws -> [UInt8]?

  // Nodes and records
  /// The live ones of these nodes, with all nodes above them.
  func nodes(_ ids: [NodeID], in zone: ZoneKey) throws -> [NodeRow]
  /// The live nodes right below these, at most `limit` of all of them together; no row beyond is read.
  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) throws -> [NodeRow]
  /// The live nodes that have these names now.
  func holders(of names: [NodeName], in zone: ZoneKey) throws -> [NodeName: NodeID]
  /// The zone that now holds the node.
  func zone(ofNode node: NodeID, tree: TreeID) throws -> ZoneRow?
  func records(_ keys: [Int64]) throws -> [Int64: StoredRecord]
  func record(hash: RecordHash, in zone: ZoneKey) throws -> StoredRecord?

  // Content
  /// A ticket or a large content. These ids are the names of files, so there is one of each.
  func file(_ id: BlobID) throws -> BlobRow?
  /// For each name a small content that this node has, or had and that is kept; else a file of that id, whatever its node.
  func contents(_ names: [ContentName], in tree: TreeID) throws -> [ContentName: BlobRow]
  func blobs(_ keys: [Int64]) throws -> [BlobRow]
  func inlineBytes(of blob: BlobRow) throws -> [UInt8]?
  func parts(of blob: BlobRow) throws -> [BlobStatus.Part]

  /// Bytes of all contents in this user's zones, live and kept, and of the uploads that they began in any zone and that
  /// are attached to nothing.
  func contentBytes(of user: UserID) throws -> UInt64

  /// Replaced contents in this user's zones, the oldest first, as many as free that many bytes.
  func replacedContents(of user: UserID, bytes: UInt64) throws -> [BlobRow]

  /// Bytes of all records, commits, access lists and grants in this user's zones.
  func recordBytes(of user: UserID) throws -> UInt64

  /// Counts and sizes for the audit report, from sums that are kept with each zone.
  func usage(of user: UserID) throws -> UsageRow
}

/// A read-write view. Everything it does is undone if the closure throws.
package protocol MetadataTransaction: MetadataReader {
  // Accounts
  func insertUser(_ user: UserRow) throws
  /// Updates login, chain head and state.
  func updateUser(_ user: UserRow) throws
  func appendLink(_ link: IdentityLink, to user: UserID) throws
  func setKeyring(_ bytes: [UInt8], of user: UserID) throws
  func useInvite(_ codeHash: [UInt8], user: UserID, now: UInt64) throws

  // Devices and sessions
  func putDevice(_ device: DeviceRow, of user: UserID) throws
  func removeDevice(_ id: DeviceID, of user: UserID) throws
  func insertSession(_ session: SessionRow) throws
  func removeSession(tokenHash: [UInt8]) throws
  func removeExpiredSessions(now: UInt64) throws
  /// Ends all but the newest sessions of a device; returns the hashes of their tokens.
  func trimSessions(of user: UserID, device: DeviceID, keeping count: Int) throws -> [[UInt8]]

  // Logs
  /// Appends one commit to each of these zones and changes their nodes, names and contents as the delta says. What it
  /// holds was decided over this transaction's own reads.
  ///
  /// - Returns: where the zones stand now, in the order of the delta.
  func apply(_ delta: CommitDelta) throws -> [ZoneStatus]

  // Uploads
  func insertTicket(_ blob: BlobRow) throws -> Int64
  func updateTicket(_ blob: BlobRow) throws
  func insertPart(_ index: Int, hash: [UInt8], of blob: BlobRow, now: UInt64) throws
  func removeBlobs(_ blobs: [BlobRow]) throws

  // Waste
  /// Removes replaced records and contents older than `replacedBefore` and abandoned tickets, at most `limit` of each.
  func collect(replacedBefore: UInt64, abandonedBefore: UInt64, limit: Int) throws -> Collected
  /// Takes as much room as a small commit would, until ``clearRoom()``.
  func takeRoom() throws
  func clearRoom() throws

  /// Runs after this transaction is durable, in commit order, before the caller of `write` goes on. Must be quick.
  func afterCommit(_ effect: @escaping @Sendable () -> Void)
}

/// What one step of a collection removed.
package struct Collected: Sendable, Hashable {
  /// Contents whose files may go.
  package var files: [BlobID]
  /// Whether there may be more.
  package var isMore: Bool

  package init(files: [BlobID], isMore: Bool) {
    self.files = files
    self.isMore = isMore
  }
}

/// The disk is full; nothing of the write is kept.
package struct StorageFull: Error {
  package init() {}
}
