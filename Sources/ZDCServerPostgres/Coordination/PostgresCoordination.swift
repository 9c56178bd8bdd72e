internal import Foundation
internal import Synchronization
package import ZDCProtocol
package import ZDCServer

/// The coordination of all server processes over one database, or of one that has it alone: what it announces is in the
/// database even if it does not learn the outcome of a COMMIT.
///
/// What all processes must see is in the database (``AnnouncementFeed``, ``SharedTurns``, challenges, device links), and
/// PostgreSQL's advisory locks are the claims: a process that is killed loses its own.
package final class PostgresCoordination: ServerCoordination {
  package let challengeKey: [UInt8]
  private let store: PostgresStore
  private let feed: AnnouncementFeed
  private let turns: SharedTurns
  private let claims: SharedClaims
  private let followsDatabaseTime: Bool
  package let linkWaiters = LinkWaiters()
  private let listener = Mutex<(@Sendable (Announcement) -> Void)?>(nil)

  /// Begins to follow the announcements of other processes.
  ///
  /// - Parameters:
  ///   - store: the opened store of the same database.
  ///   - holdMs: how long a commit may wait for its turn in a busy zone.
  ///   - followsDatabaseTime: whether the database's clock counts, so that the clocks of the servers' machines may
  ///     differ. Otherwise the process's own one does, which a single process may set as it likes.
  /// - Throws: ``PostgresOpenError``.
  package init(_ store: PostgresStore, holdMs: UInt64, followsDatabaseTime: Bool = true) throws {
    do {
      self.followsDatabaseTime = followsDatabaseTime
      self.store = store
      let connection = try store.connect()
      challengeKey = try Self.secret(connection)
      feed = try AnnouncementFeed(connection, connect: store.connect)
      turns = try SharedTurns(store, connection, holdMs: holdMs, announced: feed.wake)
      claims = SharedClaims(connect: store.connect)
    } catch { throw PostgresOpenError(error) }
  }

  /// Returns the secret of this server, which the first process draws.
  private static func secret(_ db: PostgresConnection) throws -> [UInt8] {
    db.enqueue(
      "INSERT INTO settings(name, value) VALUES ('challenge-key', $1) ON CONFLICT DO NOTHING",
      .bytes(PostgresSchema.randomKey()))
    guard
      let key = try db.first("SELECT value FROM settings WHERE name = 'challenge-key'", row: { $0.bytes(0) })
    else { throw PostgresError.damaged }
    return key
  }

  // MARK: - Announcements

  package func listen(_ receive: @escaping @Sendable (Announcement) -> Void) {
    listener.withLock { $0 = receive }
    feed.start { [turns, linkWaiters] entry in
      switch entry {
      case .announcement(let announcement):
        if case .unknown = announcement {
          turns.forget()
          linkWaiters.wakeAll()
        }
        receive(announcement)
      case .turn(let turn): turns.receive(turn)
      case .link(let id): linkWaiters.wake(id)
      }
    }
  }

  package func announce(_ announcement: Announcement, in transaction: any MetadataTransaction) throws {
    let transaction = try PostgresStore.own(transaction)
    try AnnouncementFeed.append(.announcement(announcement), to: transaction.db)
    transaction.afterCommit { [self] in
      if announcement.endsSessions { listener.withLock(\.self)?(announcement) }
      feed.wake()
    }
  }

  package var isCurrent: Bool { feed.isCurrent }
  package var isShared: Bool { store.isShared }
  package var processes: Int { store.processes }

  package func nowMs(_ own: ServerClock) -> UInt64 { followsDatabaseTime ? feed.time.nowMs : own.nowMs() }

  // MARK: - Challenges and device links

  package func use(nonce: [UInt8], expiresMs: UInt64, now: UInt64) async throws -> Bool {
    try await store.perform { db in
      db.enqueue(Self.removal(from: "nonces"), .ms(now))
      return try db.run(
        "INSERT INTO nonces(nonce, expires_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING", .bytes(nonce), .ms(expiresMs))
        == 1
    }
  }

  /// Removes expired rows, but those that another process removes at this moment.
  static func removal(from table: String) -> String {
    let expired = "SELECT ctid FROM \(table) WHERE expires_ms <= $1 LIMIT 100 FOR UPDATE SKIP LOCKED"
    return "DELETE FROM \(table) WHERE ctid = ANY(ARRAY(\(expired)))"
  }

  package func offer(_ offer: [UInt8], as id: DeviceLinkID, from party: String, now: UInt64) async throws {
    try await store.perform { try SharedLinks($0).offer(offer, as: id, from: party, now: now) }
  }

  package func deviceLink(_ id: DeviceLinkID, now: UInt64) async throws -> DeviceLinkRow? {
    try await store.perform { try SharedLinks($0).link(id, now: now) }
  }

  package func answer(_ id: DeviceLinkID, with sealed: [UInt8], now: UInt64) async throws {
    try await store.perform { try SharedLinks($0).answer(id, with: sealed, now: now) }
    feed.wake()
  }

  package func reveal(_ nonce: DeviceLinkNonce, of id: DeviceLinkID, now: UInt64) async throws {
    try await store.perform { try SharedLinks($0).reveal(nonce, of: id, now: now) }
    feed.wake()
  }

  // MARK: - Turns and claims

  package func enter(_ zones: [ZoneID], as writer: ZoneWriter, bytes: Int) async throws {
    try await turns.enter(zones, as: writer, bytes: bytes)
  }

  package func ended(_ end: ZoneTurnEnd, in zones: [ZoneID], of writer: ZoneWriter) async {
    await turns.ended(end, in: zones, of: writer)
  }

  package func isBusy(_ zone: ZoneID) -> Bool { turns.isBusy(zone) }

  package func claim(part: Int, of blob: BlobID) async -> Bool { await claims.claim(part: part, of: blob) }
  package func release(part: Int, of blob: BlobID) async { await claims.release(part: part, of: blob) }
  package func claimRemoval(of blob: BlobID) async -> Bool { await claims.claimRemoval(of: blob) }
  package func releaseRemoval(of blob: BlobID) async { await claims.releaseRemoval(of: blob) }
  package func claimUpkeep() async -> Bool { await claims.claimUpkeep() }

  package func close() {
    turns.close()
    linkWaiters.close()
  }

  package func end() async {
    await feed.end()
    await claims.end()
  }
}

extension Announcement {
  /// Whether the process that made the change must know it before it answers.
  fileprivate var endsSessions: Bool {
    switch self {
    case .sessionsEnded, .deviceRemoved, .allSessionsEnded: true
    case .head, .membership, .message, .unknown: false
    }
  }
}
