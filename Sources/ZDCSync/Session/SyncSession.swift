internal import Foundation
package import Logging
package import ZDCAccounts
package import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
package import ZDCSupport
package import ZDCTransfers
package import ZDCTreesystem

/// The state that push and pull of one local user share: the user's identity and keys, the database, the server and the
/// app.
///
/// A class, because each record that is applied passes it on several times.
package final class SyncSession: Sendable {
  package let localUser: Int64
  package let user: UserID
  package let localUserID: String
  package let appTreeID: String
  package let database: ZDCDatabaseConnection
  package let api: ServerAPI
  /// Replaced when the identity chain has grown.
  let currentKeys: Locked<UserKeys>
  package let identities: IdentityStore
  /// Compares the identity chain with the pinned one. Returns nil if the chain has no new links.
  package let fetchIdentity: @Sendable (_ known: LinkHash) async throws -> UserKeys?
  package let delegate: @Sendable () -> any ZeroDarkCloudDelegate
  package let now: @Sendable () -> UInt64
  package let time: EngineClock
  package let logger: Logger
  package let events: SyncEvents
  let activity: SyncActivity
  package let progress: UploadProgress
  /// The requests that the system sends while the app is suspended.
  package let handOver: TransferHandOver
  let uploadSlots = UploadSlots()
  /// Frozen zones that were retried since launch.
  let retriedFrozen = Locked<Set<Int64>>([])
  /// Zones that began with a split of another one, and that no worker has pulled yet.
  let newZones = Locked<Set<Int64>>([])
  /// The number of answers with whole logs that are being read.
  let wholeLogs = Locked(0)
  /// The requests for keys of zones, by zone.
  let keyRequests = Locked<[Int64: KeyRequestPause]>([:])
  /// Keys of zones that members have sent. The zones' workers take them, because only these change the zones' rows.
  let sentKeys = Locked<[Int64: NodeKey]>([:])

  init(
    localUser: Int64, localUserID: String, appTreeID: String, database: ZDCDatabaseConnection, api: ServerAPI,
    keys: UserKeys, identities: IdentityStore,
    fetchIdentity: @escaping @Sendable (_ known: LinkHash) async throws -> UserKeys?,
    delegate: @escaping @Sendable () -> any ZeroDarkCloudDelegate, now: @escaping @Sendable () -> UInt64,
    time: EngineClock, logger: Logger, events: SyncEvents, activity: SyncActivity, progress: UploadProgress,
    handOver: TransferHandOver
  ) {
    self.localUser = localUser
    user = keys.identity.userID
    self.localUserID = localUserID
    self.appTreeID = appTreeID
    self.database = database
    self.api = api
    currentKeys = Locked(keys)
    self.identities = identities
    self.fetchIdentity = fetchIdentity
    self.delegate = delegate
    self.now = now
    self.time = time
    self.logger = logger
    self.events = events
    self.activity = activity
    self.progress = progress
    self.handOver = handOver
  }

  package var keys: UserKeys { currentKeys.withLock { $0 } }

  package func refreshIdentity() async throws -> UserKeys? { try await fetchIdentity(keys.identity.head) }
}

extension SyncSession {
  /// Signs a message and seals it for its recipient.
  func envelope(_ fields: MessageBody.Fields, _ key: RecipientKey) throws -> MessageEnvelope {
    let signer = keys.signingKey
    let body = try MessageBody(fields) { try signer.sign(label: "message", message: $0) }
    return try MessageEnvelope(sealing: body, encPub: key.encPub)
  }
}

/// When a zone's key may be asked for again.
struct KeyRequestPause: Sendable {
  var zoneKeyGen: UInt32
  /// The number of requests.
  var count = 0
  var untilMs: UInt64 = 0
}

extension SyncSession {
  /// Fetches the keys of other members that a page's replay needs. Errors in their chains are recorded and reported.
  ///
  /// - Parameter list: The access list in force before the page, or nil before the genesis.
  func keys(for page: PageContents, after list: ZoneACL?, zone: Int64) async throws -> WriterKeys {
    try await keys(of: page.memberSigners(after: list), zone: zone)
  }

  /// Fetches the keys of other members that replay needs. Errors in their chains are recorded and reported.
  func keys(of signers: Set<Signer>, zone: Int64) async throws -> WriterKeys {
    let (keys, refused) = try await identities.keys(of: signers, own: keys)
    try await report(refused, zone: zone)
    return keys
  }

  /// Records and reports errors in chains of members of a zone.
  private func report(_ refused: [ZDCSecurityError], zone: Int64) async throws {
    for error in refused {
      try await database.asyncReadWrite { [localUser, now] transaction in
        try transaction.record(error, localUser: localUser, zone: zone, atMs: now())
      }
      events.report(error)
    }
  }

  /// Fetches the identity chains of members whom this device has not met, so that the app finds them in its callbacks.
  ///
  /// Replay needs none of these chains: whatever the server answers, the caller continues, and a later page asks again.
  func meetMembers(of lists: [ZoneACL?], zone: Int64) async throws {
    try await meet(lists.compactMap { $0 }.reduce(into: Set<UserID>()) { $0.formUnion(others(in: $1)) }, zone: zone)
  }

  /// Fetches the identity chains of users whom this device has not met; see ``meetMembers(of:zone:)``.
  func meet(_ users: Set<UserID>, zone: Int64) async throws {
    do {
      try await report(try await identities.meet(users), zone: zone)
    } catch let error as ZDCSecurityError {
      try await report([error], zone: zone)
    } catch is ServerError {
    } catch is TransportError {
    }
  }

  /// Whether ``meetMembers(of:zone:)`` would ask the server for members of the list.
  func hasStrangers(_ list: ZoneACL) -> Bool {
    !identities.strangers(among: others(in: list)).isEmpty
  }

  private func others(in list: ZoneACL) -> Set<UserID> {
    Set(list.fields.entries.map(\.user) + [list.fields.owner]).subtracting([user])
  }

  func cachedKeys(of signers: Set<Signer>) -> WriterKeys? { identities.cachedKeys(of: signers, own: keys) }
}

extension SyncSession {
  /// Returns the API's value for a row.
  package func node(_ row: NodeRow, in transaction: ZDCReadTransaction) throws -> ZDCNode {
    try transaction.zdcNode(row)
  }

  /// Returns the row's path as the app sees it.
  package func path(_ row: NodeRow, in transaction: ZDCReadTransaction) throws -> ZDCTreesystemPath {
    try transaction.zdcPath(row)
  }
}
