internal import Foundation
internal import Synchronization
internal import ZDCProtocol
internal import ZDCServer

/// The queue of a busy zone has changed.
struct TurnChange: Sendable, Codable {
  private let treeID: TreeID
  private let zoneRoot: NodeID
  let isBusy: Bool
  /// The device that has the lease. Without one, all held requests may ask again.
  let holder: ZoneWriter?
  /// Whether the zone has no queue any more.
  let isForgotten: Bool

  init(to queue: ZoneQueue, of zone: ZoneID) {
    (treeID, zoneRoot) = (zone.tree, zone.root)
    (isBusy, holder, isForgotten) = (queue.isBusy, queue.lease?.holder, queue.isForgettable)
  }

  init(endOfQueueOf zone: ZoneID) {
    (treeID, zoneRoot, isBusy, holder, isForgotten) = (zone.tree, zone.root, false, nil, true)
  }

  var zone: ZoneID { ZoneID(tree: treeID, root: zoneRoot) }
}

/// The queues of all busy zones, as rows that each change locks.
///
/// Each process knows from announcements which zones have a row, so that a commit in any other zone costs no query. If
/// it learns that a moment too late, it lets a commit through out of turn: only its order differs.
final class SharedTurns: Sendable {
  private static let zones: Int64 = 1_024
  /// The longest rest of a device.
  private static let keptMs: Int64 = 600_000
  /// Covers a change between the question and the moment when the request is held.
  private static let askAgain: Duration = .milliseconds(250)

  /// For each zone with a row, whether it is busy.
  private let known: Mutex<[ZoneID: Bool]>
  private let held = HeldRequests()
  private let store: PostgresStore
  private let hold: Duration
  private let announced: @Sendable () -> Void

  /// - Parameter announced: called after a change was appended to the feed.
  init(
    _ store: PostgresStore, _ db: PostgresConnection, holdMs: UInt64, announced: @escaping @Sendable () -> Void
  ) throws {
    self.store = store
    self.announced = announced
    hold = .milliseconds(holdMs)
    let rows = try db.all("SELECT tree, root, state FROM turns") { row in
      (ZoneID(tree: try row.id(0), root: try row.id(1)), Self.queue(row.bytes(2))?.isBusy ?? false)
    }
    known = Mutex(Dictionary(rows) { first, _ in first })
  }

  func enter(_ zones: [ZoneID], as writer: ZoneWriter, bytes: Int) async throws {
    let end = ContinuousClock.now + hold
    for zone in zones where isKnown(zone) {
      while let wait = try await change(zone, { $0.ask(writer, now: $1) }) ?? nil {
        let rest = end - .now
        guard rest > .zero, !Task.isCancelled, let signal = try held.park(writer, in: zone, bytes) else {
          throw ServerError.outOfTurn(waitMs: wait)
        }
        await signal.wait(upTo: min(.milliseconds(wait), rest, Self.askAgain))
        held.unpark(writer, in: zone)
      }
    }
  }

  /// A change that fails is not reported: the commit has ended already, and only the order of later ones depends on it.
  func ended(_ end: ZoneTurnEnd, in zones: [ZoneID], of writer: ZoneWriter) async {
    for zone in zones where end == .lost || isKnown(zone) {
      _ = try? await change(zone, isNew: end == .lost) { $0.ended(end, writer, now: $1) }
    }
  }

  func isBusy(_ zone: ZoneID) -> Bool { known.withLock { $0[zone] ?? false } }

  func close() { held.close() }

  /// Receives a change of any process.
  func receive(_ change: TurnChange) {
    known.withLock { $0[change.zone] = change.isForgotten ? nil : change.isBusy }
    held.wake(in: change.zone, holder: change.holder)
  }

  /// Forgets which zones are busy, after changes may have been missed. The next change of a zone's queue names it again.
  func forget() { known.withLock { $0 = [:] } }

  /// Removes the queues in which nothing has happened for longer than a device can rest.
  static func prune(_ db: PostgresConnection) throws {
    let gone = try db.all(
      "DELETE FROM turns WHERE changed_ms < \(SharedTime.sql) - $1 RETURNING tree, root", .int(keptMs)
    ) { ZoneID(tree: try $0.id(0), root: try $0.id(1)) }
    for zone in gone { try announce(TurnChange(endOfQueueOf: zone), db) }
    try db.flush()
  }

  // MARK: - Rows

  private func isKnown(_ zone: ZoneID) -> Bool { known.withLock { $0[zone] != nil } }

  private static func queue(_ bytes: [UInt8]) -> ZoneQueue? {
    try? JSONDecoder().decode(ZoneQueue.self, from: Data(bytes))
  }

  private static func announce(_ change: TurnChange, _ db: PostgresConnection) throws {
    try AnnouncementFeed.append(.turn(change), to: db)
  }

  /// Changes the zone's queue in a transaction; returns nil if the zone has none.
  private func change<T: Sendable>(
    _ zone: ZoneID, isNew: Bool = false, _ body: @escaping @Sendable (inout ZoneQueue, UInt64) -> T
  ) async throws -> T? {
    let (value, change) = try await store.perform { db in
      db.enqueue("BEGIN")
      if isNew { Self.create(zone, db) }
      let row = try db.first(
        "SELECT state, \(SharedTime.sql) FROM turns WHERE tree = $1 AND root = $2 FOR UPDATE", .id(zone.tree),
        .id(zone.root)
      ) { (state: $0.bytes(0), now: $0.unsigned(1)) }
      guard let row else { return (T?.none, TurnChange(endOfQueueOf: zone)) }
      var queue = Self.usable(row.state, now: row.now)
      let before = queue
      let value = body(&queue, row.now)
      try Self.store(queue, of: zone, now: row.now, db)
      let change = TurnChange(to: queue, of: zone)
      if isNew || change.isForgotten || before.lease != queue.lease || before.isBusy != queue.isBusy {
        try Self.announce(change, db)
      }
      return (value, change)
    }
    receive(change)
    announced()
    return value
  }

  /// If there are too many, forgets the zones with the oldest last requests, so a busy zone is never forgotten for a
  /// quiet one.
  private static func create(_ zone: ZoneID, _ db: PostgresConnection) {
    db.enqueue(
      """
      DELETE FROM turns WHERE (tree, root) IN (SELECT tree, root FROM turns ORDER BY changed_ms DESC OFFSET $1)
      """, .int(zones - 1))
    db.enqueue(
      """
      INSERT INTO turns(tree, root, changed_ms, state) VALUES ($1, $2, \(SharedTime.sql), ''::bytea) ON CONFLICT DO NOTHING
      """, .id(zone.tree), .id(zone.root))
  }

  /// Returns the stored queue. If another version has written it, or the database's clock was set back, so that leases
  /// would last too long, the queue begins again.
  private static func usable(_ state: [UInt8], now: UInt64) -> ZoneQueue {
    guard let stored = queue(state), stored.lastMs <= now else { return ZoneQueue(now: now) }
    return stored
  }

  private static func store(_ queue: ZoneQueue, of zone: ZoneID, now: UInt64, _ db: PostgresConnection) throws {
    guard !queue.isForgettable else {
      return db.enqueue("DELETE FROM turns WHERE tree = $1 AND root = $2", .id(zone.tree), .id(zone.root))
    }
    db.enqueue(
      "UPDATE turns SET state = $1, changed_ms = $2 WHERE tree = $3 AND root = $4",
      .bytes([UInt8](try JSONEncoder().encode(queue))), .ms(now), .id(zone.tree), .id(zone.root))
  }
}
