internal import Dispatch
internal import Foundation
internal import Synchronization
internal import ZDCServer

/// The table of announcements that all processes of a server append to and read.
///
/// An entry is visible exactly when its transaction is: a process that is killed right after its commit has announced it.
/// A notification after a commit wakes the readers of the other processes. It may be lost: they also read twice a second.
final class AnnouncementFeed: Sendable {
  typealias Connect = @Sendable () throws -> PostgresConnection
  typealias Receive = @Sendable (FeedEntry) -> Void

  private struct State {
    var lastRead: ContinuousClock.Instant
    var isAwake = false
    var hasOwn = false
    var isEnded = false
  }

  private static let channel = "zdc_feed"
  private static let pollMs: Int32 = 500
  private static let currentFor: Duration = .seconds(2)

  private let state: Mutex<State>
  private let wakeUp = DispatchSemaphore(value: 0)
  private let threads = DispatchGroup()
  private let connect: Connect
  private let start: FeedReader
  let time: SharedTime
  /// Names this process in its notifications.
  private let name = UUID().uuidString

  /// Reads the feed's end, where ``start(_:)`` begins.
  init(_ db: PostgresConnection, connect: @escaping Connect) throws {
    self.connect = connect
    start = try FeedReader(atEndOf: db)
    time = SharedTime(ms: start.databaseMs)
    state = Mutex(State(lastRead: .now))
  }

  /// Appends an entry in the transaction that is open.
  static func append(_ entry: FeedEntry, to db: PostgresConnection) throws {
    let (bytes, page) = try entry.encoded()
    db.enqueue(
      "INSERT INTO feed(xid, entry, page) VALUES (pg_current_xact_id(), $1, $2)", .bytes(bytes), .bytes(page))
  }

  /// Delivers each entry from now on, in order and on one thread.
  func start(_ receive: @escaping Receive) {
    inThread { $0.read(receive) }
    inThread { $0.listen() }
  }

  /// Delivers what this process has just committed, and wakes the other processes.
  @Sendable func wake() { wake(hasOwn: true) }

  /// Whether the last read was a moment ago.
  var isCurrent: Bool { state.withLock { $0.lastRead.duration(to: .now) < Self.currentFor } }

  func end() async {
    state.withLock { $0.isEnded = true }
    wake(hasOwn: false)
    await withCheckedContinuation { continuation in
      threads.notify(queue: .global()) { continuation.resume() }
    }
  }

  private func inThread(_ work: @escaping @Sendable (AnnouncementFeed) -> Void) {
    threads.enter()
    Thread.detachNewThread { [self] in
      work(self)
      threads.leave()
    }
  }

  private func wake(hasOwn: Bool) {
    let sleeps = state.withLock { state in
      if hasOwn { state.hasOwn = true }
      defer { state.isAwake = true }
      return !state.isAwake
    }
    if sleeps { wakeUp.signal() }
  }

  private var isEnded: Bool { state.withLock { $0.isEnded } }

  // MARK: - The thread that reads

  private func read(_ receive: Receive) {
    var connection: PostgresConnection?
    var reader = start
    while !isEnded {
      do {
        let db = try connection ?? connect()
        connection = db
        try notifyOthers(db)
        let entries = try reader.next(db)
        time.set(ms: reader.databaseMs)
        for entry in entries { receive(entry) }
        state.withLock { $0.lastRead = .now }
        try reader.prune(db)
      } catch {
        // The reader continues with the next connection.
        connection = nil
      }
      _ = wakeUp.wait(timeout: .now() + .milliseconds(Int(Self.pollMs)))
    }
  }

  /// Adds a notification to the statements that the next read sends, if this process has committed something.
  private func notifyOthers(_ db: PostgresConnection) throws {
    let hasOwn = state.withLock { state in
      defer { (state.isAwake, state.hasOwn) = (false, false) }
      return state.hasOwn
    }
    if hasOwn { db.enqueue("SELECT pg_notify($1, $2)", .text(Self.channel), .text(name)) }
  }

  // MARK: - The thread that waits for notifications

  private func listen() {
    var connection: PostgresConnection?
    while !isEnded {
      do {
        let db = try connection ?? listening()
        connection = db
        if try db.notifications(waitingMs: Self.pollMs).contains(where: { $0 != name }) { wake(hasOwn: false) }
      } catch {
        connection = nil
        Thread.sleep(forTimeInterval: 0.5)
      }
    }
  }

  private func listening() throws -> PostgresConnection {
    let db = try connect()
    try db.run("LISTEN \(Self.channel)")
    return db
  }
}
