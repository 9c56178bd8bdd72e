package import ZDCProtocol

/// The store for everything but large content: accounts, sessions, logs, records, small content.
///
/// Contract for all implementations (tested by the suites that run over `StoreContractTests.stores`):
/// - `read` sees one consistent state.
/// - A `write` names the subjects that it changes. Two writes that share a subject run one after the other, and what a
///   closure reads of its subjects does not change until its own changes are made. The changes are durable when the
///   call returns, and discarded if the closure throws. Concurrent writes may share one durable step; each still
///   succeeds or fails on its own.
/// - Both closures are synchronous: a suspension inside would hold locks that other calls wait for.
/// - Queries about many nodes, records or blobs take a list, because each query may be a database round trip.
package protocol MetadataStore: Sendable {
  /// - Parameter subjects: those that the closure changes. A store with one writer for everything may ignore them.
  func write<T: Sendable>(
    _ subjects: Set<WriteSubject>, _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
  ) async throws -> T
  func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T
  /// Compacts the store's files. Called when the server is idle.
  func compact() async throws
  /// Flushes and closes the store. No call may follow.
  func close() async throws
  /// The number of writes and how long they waited, for `/metrics`.
  var writeStatistics: WriteStatistics { get }
}

/// A part of the store that one write at a time changes.
///
/// Retained content belongs to no subject: a write that needs its space removes it from any zone of the owner. A store
/// with several writers must leave content that another write has attached again.
package enum WriteSubject: Sendable, Hashable {
  /// The user's row, identity chain, keyring, devices, sessions, trees, and memberships in zones of others.
  case account(UserID)
  /// The zone's log, nodes, records, live content, members, and the memberships in it that have not ended.
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
package protocol MetadataReader: InboxReader {
  // Accounts
  func user(_ id: UserID) throws -> UserRow?
  /// Returns those of these users who have an account.
  func users(_ ids: [UserID]) throws -> [UserID: UserRow]
  func user(lookup: LookupID) throws -> UserRow?
  /// Returns accounts in the order of their IDs.
  func users(after id: UserID?, limit: Int) throws -> [UserRow]
  func links(of user: UserID) throws -> [[UInt8]]
  /// Returns the links of several users in the order requested, either all links of a user or none.
  ///
  /// The result ends before the user whose links would take it over `limit` bytes. It always has the links of the first
  /// user who has any.
  func links(after positions: [ChainPosition], limit: Int) throws -> [[UInt8]]
  func link(_ seq: UInt32, of user: UserID) throws -> [UInt8]?
  /// Returns the total length of all links.
  func chainBytes(of user: UserID) throws -> Int
  func signKey(user: UserID, generation: UInt32) throws -> [UInt8]?
  func keyring(of user: UserID) throws -> [UInt8]?
  func isInviteUsed(_ codeHash: [UInt8]) throws -> Bool
  /// Returns handles that begin with this text and are in force, in their order. Reads no more rows than that, apart
  /// from those of handles that were given up.
  func handles(beginning: String, limit: Int) throws -> [HandleList.Entry]
  /// Returns the user's handle, and one that the user gave up and that is still reserved, in their order.
  func handles(of user: UserID) throws -> [HandleRow]

  // Devices and sessions
  func device(_ id: DeviceID, of user: UserID) throws -> DeviceRow?
  /// Returns devices in the order of their registration; those of the same time in the order of their IDs.
  func devices(of user: UserID) throws -> [DeviceRow]
  func session(tokenHash: [UInt8]) throws -> SessionRow?
  func sessions(of user: UserID) throws -> [SessionRow]

  // Zones
  func zone(_ id: ZoneID) throws -> ZoneRow?
  /// Returns the zones of the user's own trees, and those that the user has accepted, that have changed since a
  /// position, and the position up to which the list is complete.
  ///
  /// The list has all of them if this store did not issue the position, or lost it when it was restored from a backup.
  /// The query reads no row of a zone that the user has not accepted.
  func zones(of user: UserID, since position: FeedPosition?) throws -> ZoneChanges
  /// Returns zones of other users that the user may read and has not accepted, in the order of their cursors.
  func zones(offeredTo user: UserID, after cursor: UInt64, limit: Int) throws -> [OfferedZone]
  func permissions(of user: UserID, in zone: ZoneKey) throws -> ZoneACL.Permissions?
  /// Returns a member or former member, by one lookup.
  func member(_ user: UserID, of zone: ZoneKey) throws -> MemberRow?
  /// Returns the zones that the user has accepted, oldest acceptance first.
  func memberships(of user: UserID) throws -> [MembershipRow]
  func membership(of user: UserID, in zone: ZoneKey) throws -> MembershipRow?
  /// Counts memberships for the audit report. Reads at most `limit` rows for each count.
  func memberCounts(of user: UserID, limit: Int) throws -> MemberCounts
  func genesisCommits(owner: UserID, appTreeID: String) throws -> [CommitHash]
  func trees(of owner: UserID) throws -> [TreeRow]
  func treeID(of zone: ZoneKey) throws -> TreeID?
  /// Counts the zones of the user's own trees, closed ones included. Reads at most `limit` rows of zones.
  func zoneCount(of owner: UserID, limit: Int) throws -> Int
  /// Returns when the newest commit was received; nil if there is none. A store with several writers has no order of
  /// commits of different zones, and returns the latest time.
  func lastReceivedMs() throws -> UInt64?

  // Logs
  func commit(_ seq: UInt64, of zone: ZoneKey) throws -> StoredCommit?
  /// Calls `body` with the commits after `after` (nil: from genesis) in order, until it returns false.
  ///
  /// - Parameter withRecords: whether to include the records that came with each commit and that no later put or delete
  ///   replaced. Damaged ones are only named.
  func commits(
    of zone: ZoneKey, after: UInt64?, withRecords: Bool, _ body: (CommitRow) throws -> Bool
  ) throws
  func grant(zone: ZoneKey, user: UserID, hash: GrantHash) throws -> [UInt8]?
  /// Returns the newest access list that a commit before this number introduced. Reads no commits without a list.
  func list(before seq: UInt64, of zone: ZoneKey) throws -> [UInt8]?
  /// Returns the length of the state list with which the zone began; nil for a zone that was not split off.
  func stateBytes(of zone: ZoneKey) throws -> UInt64?
  /// Returns a part of that list, in order from 0; nil after the last one. A part has at most 1 MiB.
  func statePart(_ index: Int, of zone: ZoneKey) throws -> [UInt8]?

  // Nodes and records. A node's zone is that of the nearest zone root above it, whatever zone's commit put the node: a
  // split changes the zone of a whole branch and writes none of its rows.
  /// Returns those of these nodes that are live, with all their ancestors.
  ///
  /// A node that no commit of its zone has put has `putSeq` 0: the zone began with it.
  ///
  /// - Throws: `ZDCSecurityError` with `recordBindingMismatch` for a node of another zone of the tree;
  ///   `ServerError.nodeIsLeaving` for one of a closed zone.
  func nodes(_ ids: [NodeID], in zone: ZoneKey) throws -> [NodeRow]
  /// Returns the live children of these nodes, at most `limit` in total; reads no row beyond.
  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) throws -> [NodeRow]
  /// Returns the leaves of the live nodes below this one, at most `limit`, in any order; reads no row beyond.
  func leaves(below top: NodeID, in zone: ZoneKey, limit: Int) throws -> [LogNode]
  /// Returns the live nodes that currently have these names.
  func holders(of names: [NodeName], in zone: ZoneKey) throws -> [NodeName: NodeID]
  /// Returns the zone that currently holds the node; a closed one while the node is not removed yet.
  func zone(ofNode node: NodeID, tree: TreeID) throws -> ZoneRow?
  /// Returns an open zone of the tree in which the user has this permission: the oldest one if there are several.
  func zone(of tree: TreeID, where user: UserID, holds permission: ZoneACL.Permissions) throws -> ZoneRow?
  /// - Throws: ``RecordDamaged``.
  func records(_ keys: [Int64]) throws -> [Int64: StoredRecord]
  /// Returns of these the nodes' current records, and those that they had in this zone and that are retained. The end of
  /// a zone replaces all its records.
  func records(
    _ names: [RecordName], in zone: ZoneKey
  ) throws -> [RecordName: Result<StoredRecord, RecordDamaged>]

  // Content
  /// Returns a ticket or a large blob. Their ids are file names; several nodes may have the same one.
  func file(_ id: BlobID) throws -> BlobRow?
  /// Returns for each name the content that this node has, or had and that is retained; else a file with that id,
  /// regardless of its node.
  func contents(_ names: [ContentName], in tree: TreeID) throws -> [ContentName: BlobRow]
  func blobs(_ keys: [Int64]) throws -> [BlobRow]
  /// Returns the bytes of those of these blobs that are stored with the metadata, by their keys.
  func inlineBytes(of blobs: [BlobRow]) throws -> [Int64: [UInt8]]
  func parts(of blob: BlobRow) throws -> [BlobStatus.Part]

  /// Returns the bytes of all blobs in this user's zones, live and retained, and of the unattached uploads that the
  /// user began in any zone.
  func contentBytes(of user: UserID) throws -> UInt64

  /// Returns replaced blobs in this user's zones, oldest first, as many as needed to free `bytes` bytes.
  func replacedContents(of user: UserID, bytes: UInt64) throws -> [BlobRow]

  /// Returns the bytes of all records, commits, access lists and grants in this user's zones.
  func recordBytes(of user: UserID) throws -> UInt64

  /// Returns counts and sizes for the audit report, from sums that are stored with each zone.
  func usage(of user: UserID) throws -> UsageRow
}

extension MetadataReader {
  /// Asks once for each level of the branch.
  package func leaves(below top: NodeID, in zone: ZoneKey, limit: Int) throws -> [LogNode] {
    var found: [LogNode] = []
    var level = [top]
    while !level.isEmpty, found.count < limit {
      let next = try children(of: level, in: zone, limit: limit - found.count).map(\.leaf)
      found += next
      level = next.map(\.node)
    }
    return found
  }

  /// - Throws: ``RecordDamaged``.
  package func record(_ name: RecordName, in zone: ZoneKey) throws -> StoredRecord? {
    try records([name], in: zone)[name]?.get()
  }

  package func inlineBytes(of blob: BlobRow) throws -> [UInt8]? { try inlineBytes(of: [blob])[blob.key] }

  /// Returns who signed a commit; nil if the zone has no such commit.
  package func writer(of seq: UInt64, in zone: ZoneKey) throws -> UserID? {
    var bytes: [UInt8]?
    try commits(of: zone, after: seq == 0 ? nil : seq - 1, withRecords: false) { row in
      if row.seq == seq { bytes = row.bytes }
      return false
    }
    return try bytes.map { try ZoneCommit($0).fields.writer }
  }
}

/// A read-write view. All its changes are undone if the closure throws.
package protocol MetadataTransaction: MetadataReader, InboxTransaction {
  // Accounts
  /// The write fails if another account has the ID or the lookup ID.
  func insertUser(_ user: UserRow) throws
  /// Updates the login, chain head and state. Does nothing for an account that does not exist.
  func updateUser(_ user: UserRow) throws
  func appendLink(_ link: IdentityLink, to user: UserID) throws
  func setKeyring(_ bytes: [UInt8], of user: UserID) throws
  /// The write fails if the invite was used.
  func useInvite(_ codeHash: [UInt8], user: UserID, now: UInt64) throws
  /// Gives the user a handle in place of the present one; nil for none. The present one is given up then, and stays
  /// reserved for the user until others may take it. Only the last one that was given up stays reserved.
  ///
  /// - Parameter freeBefore: others may take handles that were given up before this time.
  /// - Returns: false, with nothing changed, if the handle is another user's, or reserved for one.
  func setHandle(_ handle: Handle?, of user: UserID, now: UInt64, freeBefore: UInt64) throws -> Bool

  // Memberships
  /// Lets a user follow a zone. The zone is then in the lists of the user, as if it had changed.
  func putMembership(of user: UserID, in zone: ZoneKey, now: UInt64) throws
  func removeMembership(of user: UserID, in zone: ZoneKey) throws

  // Devices and sessions
  func putDevice(_ device: DeviceRow, of user: UserID) throws
  func removeDevice(_ id: DeviceID, of user: UserID) throws
  /// Removes devices with their sessions until `count` are left, those with the oldest last login first: devices without
  /// a session, in the order of their registration, then those with the oldest newest session.
  func trimDevices(of user: UserID, keeping count: Int) throws -> [DeviceID]
  func insertSession(_ session: SessionRow) throws
  func removeSession(tokenHash: [UInt8]) throws
  func removeExpiredSessions(now: UInt64) throws
  /// Ends all but the newest `count` sessions of a device; returns the hashes of their tokens.
  func trimSessions(of user: UserID, device: DeviceID, keeping count: Int) throws -> [[UInt8]]

  // Logs
  /// Announces that commits of a user to these zones are decided next, so that a store behind a network can read what they
  /// ask for in one round trip. Other stores do nothing.
  func prefetchCommits(of user: UserID, to zones: [ZoneID]) throws
  /// Appends one commit to each of these zones and applies the delta to their nodes, names and content. The delta was
  /// decided on data read in this transaction. Its puts are those of its commit: a store may take a leaf from there.
  ///
  /// A new list makes users members and former members, and ends the memberships of those whom it removes. A split frees
  /// the name of the branch. Nodes replaced by a zone's genesis belong to the zone that contained the branch.
  ///
  /// - Returns: the new status of the zones, in the order of the delta.
  func apply(_ delta: CommitDelta) throws -> [ZoneStatus]

  // Uploads
  func insertTicket(_ blob: BlobRow) throws -> Int64
  func updateTicket(_ blob: BlobRow) throws
  func insertPart(_ index: Int, hash: [UInt8], of blob: BlobRow, now: UInt64) throws
  /// Removes uploads and retained content. A store with several writers leaves content that another write has attached.
  func removeBlobs(_ blobs: [BlobRow]) throws

  // Garbage collection
  /// Removes nodes of closed zones, as a delete would when the zone was closed; at most `limit` of them.
  ///
  /// - Returns: whether there may be more.
  func removeClosedNodes(limit: Int) throws -> Bool
  /// Removes replaced records and blobs older than `replacedBefore` and abandoned tickets, at most `limit` of each.
  func collect(replacedBefore: UInt64, abandonedBefore: UInt64, limit: Int) throws -> Collected
  /// Removes the data of accounts that were closed before `closedBefore`, at most about `limit` rows of each kind per
  /// call: trees with all their zones and members, messages, uploads, keyring, login, devices and sessions. The identity
  /// chain stays: it shows other users that the account is closed.
  func removeClosedAccounts(closedBefore: UInt64, limit: Int) throws -> Collected
  /// Occupies as much disk space as a small commit needs, until ``releaseProbe()``.
  func probeFreeSpace() throws
  func releaseProbe() throws

  /// Runs `effect` after this transaction is durable, in commit order, before `write` returns. It must be quick.
  func afterCommit(_ effect: @escaping @Sendable () -> Void)
}

/// The result of one collection step.
package struct Collected: Sendable, Hashable {
  /// Blobs whose files may be removed, and which a backup may have.
  package var files: [BlobID]
  /// Uploads that no commit has attached, whose files may be removed.
  package var uploads: [BlobID]
  /// Whether there may be more to collect.
  package var isMore: Bool

  package init(files: [BlobID], uploads: [BlobID] = [], isMore: Bool) {
    (self.files, self.uploads, self.isMore) = (files, uploads, isMore)
  }
}

/// A stored record does not have the hash that its commit names. It is never served.
package struct RecordDamaged: Error, Hashable {
  package var name: RecordName

  package init(_ name: RecordName) {
    self.name = name
  }
}

extension MetadataTransaction {
  package func prefetchCommits(of user: UserID, to zones: [ZoneID]) throws {}
}

extension ServerError {
  /// A node of a closed zone that the store has not removed yet. Its id is free a little later.
  package static let nodeIsLeaving = ServerError(
    .tooManyRequests, "the nodes of a deleted zone are being removed", retryable: true, retryAfterMs: 5_000)

  /// Content that a put names and that was removed.
  package static let contentIsGone = ServerError(.blobGone, "the server no longer has the content: send it again")
}

/// The disk is full; no change of the write was kept.
package struct StorageFull: Error {
  package init() {}
}
