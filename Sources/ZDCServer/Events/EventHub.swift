internal import Dispatch
internal import NIOCore
internal import Synchronization
internal import ZDCProtocol

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Notifies open event streams of new heads, in commit order and off the store's writer. It never waits for a reader.
///
/// A stream gets the heads of its user's own zones and of the zones that the user follows. The hub learns the latter
/// from the first stream of a user that has read them from the store, and from then on by announcements. It keeps
/// earlier announcements for the user, so that no commit is missed between the read and the stream.
final class EventHub: Sendable {
  struct Subscription: Sendable {
    let id: UInt64
    let user: UserID
    let device: DeviceID
    /// The hash of the session's token.
    let session: [UInt8]
    let expiresMs: UInt64
    let mailbox: Mailbox
  }

  fileprivate enum Notice: Sendable {
    case head(HeadNotice)
    case membership(MembershipNotice)
  }

  /// The open streams of a user.
  fileprivate struct Streams {
    var all: [UInt64: Subscription] = [:]
    /// The zones of others that the user follows; nil until a stream has read them.
    var zones: Set<ZoneID>?
    /// Notices that may concern the user and came before `zones` is known.
    var early: [Notice] = []
  }

  fileprivate struct State {
    var nextID: UInt64 = 0
    var byUser: [UserID: Streams] = [:]
    /// The users whose zones are being read.
    var pending: Set<UserID> = []
    /// The users with streams who follow a zone of another user.
    var followers: [ZoneID: Set<UserID>] = [:]
    var isClosed = false
  }

  /// Maximum number of notices that are kept for a user whose zones are being read.
  fileprivate static let earlyNotices = 4_096

  private let streamsPerUser: Int
  private let pendingBytes: Int
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "zdc.server.events", qos: .userInitiated)

  init(streamsPerUser: Int, pendingBytes: Int) {
    self.streamsPerUser = streamsPerUser
    self.pendingBytes = pendingBytes
  }

  var openStreams: Int { state.withLock { $0.byUser.values.reduce(0) { $0 + $1.all.count } } }
}

// Subscriptions
extension EventHub {
  func subscribe(_ session: SessionRow) throws -> Subscription {
    let user = session.user
    return try state.withLock { state in
      guard !state.isClosed else { throw ServerError(.shuttingDown, "the server is stopping", retryable: true) }
      guard state.byUser[user]?.all.count ?? 0 < streamsPerUser else {
        throw ServerError(.tooManyRequests, "too many event streams", retryable: true, retryAfterMs: 5_000)
      }
      state.nextID += 1
      let subscription = Subscription(
        id: state.nextID, user: user, device: session.device, session: session.tokenHash,
        expiresMs: session.expiresMs, mailbox: Mailbox(limit: pendingBytes))
      state.byUser[user, default: Streams()].all[subscription.id] = subscription
      if state.byUser[user]?.zones == nil { state.pending.insert(user) }
      return subscription
    }
  }

  /// Tells the hub which zones of others the stream's user follows, as read after ``subscribe(_:)``.
  func activate(_ subscription: Subscription, following zones: [ZoneID]) {
    queue.async {
      for notice in self.begin(subscription, following: zones) { self.deliver(notice, only: subscription.user) }
    }
  }

  /// Does nothing for a stream that has ended: its zones were read before the hub began to keep notices for the others.
  ///
  /// - Returns: the notices that came before the zones were known.
  private func begin(_ subscription: Subscription, following zones: [ZoneID]) -> [Notice] {
    let user = subscription.user
    return state.withLock { state in
      guard var streams = state.byUser[user], streams.zones == nil, streams.all[subscription.id] != nil else {
        return []
      }
      let early = streams.early
      (streams.zones, streams.early) = (Set(zones), [])
      state.byUser[user] = streams
      state.pending.remove(user)
      for zone in zones { state.followers[zone, default: []].insert(user) }
      return early
    }
  }

  func unsubscribe(_ subscription: Subscription) {
    subscription.mailbox.close()
    let user = subscription.user
    state.withLock { state in
      state.byUser[user]?.all[subscription.id] = nil
      guard let streams = state.byUser[user], streams.all.isEmpty else { return }
      state.byUser[user] = nil
      state.pending.remove(user)
      for zone in streams.zones ?? [] { state.unfollow(zone, user) }
    }
  }

  /// Ends the streams, of one user or of all, for which `isEnded` returns true.
  func close(of user: UserID? = nil, where isEnded: (Subscription) -> Bool) {
    let ended = state.withLock { state in
      guard let user else { return state.byUser.values.flatMap { $0.all.values.filter(isEnded) } }
      return state.byUser[user]?.all.values.filter(isEnded) ?? []
    }
    for subscription in ended { subscription.mailbox.close() }
  }

  func close() {
    let all = state.withLock { state in
      state.isClosed = true
      return state.byUser.values.flatMap(\.all.values)
    }
    for subscription in all { subscription.mailbox.close() }
  }
}

// Delivery
extension EventHub {
  /// Called in the order of the zone's commits.
  func publish(_ notice: HeadNotice) {
    queue.async { self.deliver(.head(notice)) }
  }

  /// Called in the order of the user's changes.
  func publish(_ notice: MembershipNotice) {
    queue.async { self.deliver(.membership(notice)) }
  }

  /// Notifies the user's streams of a new message. Nothing is kept for a stream that has not started: its first list
  /// names the newest message.
  func publish(_ notice: MessageNotice) {
    queue.async {
      let readers = self.state.withLock { $0.byUser[notice.recipient]?.all.values.map { $0 } ?? [] }
      let frame = Mailbox.Frame(head: nil, bytes: ByteBuffer(string: "event: message\ndata: {}\n\n"))
      for subscription in readers { subscription.mailbox.offer(frame) }
    }
  }

  /// - Parameter only: the user to deliver to; nil for everyone whom the notice concerns.
  private func deliver(_ notice: Notice, only user: UserID? = nil) {
    switch notice {
    case .head(let head): deliver(head, only: user)
    case .membership(let change): deliver(change)
    }
  }

  /// Encodes the event once for all streams.
  private func deliver(_ notice: HeadNotice, only user: UserID?) {
    let (readers, full) = state.withLock { state in
      let full = user == nil && notice.hasMembers ? state.keep(.head(notice)) { notice.concerns($0) } : []
      return (state.readers(of: notice, only: user), full)
    }
    for subscription in full { subscription.mailbox.close() }
    guard !readers.isEmpty else { return }
    let frame = Self.frame(notice.status, page: notice.page)
    for subscription in readers { subscription.mailbox.offer(frame) }
  }

  private func deliver(_ notice: MembershipNotice) {
    let (readers, full) = state.withLock { state in
      let full = state.keep(.membership(notice)) { $0 == notice.user }
      return (state.change(notice), full)
    }
    for subscription in full { subscription.mailbox.close() }
    guard !readers.isEmpty, let status = notice.status else { return }
    let frame = Self.frame(status, page: nil)
    for subscription in readers { subscription.mailbox.offer(frame) }
  }

  /// Ends the streams of expired sessions, and sends a comment line to all others. The line keeps proxies from closing
  /// a quiet stream and detects readers that have disconnected.
  func heartbeat(now: UInt64) {
    close { $0.expiresMs <= now }
    let all = state.withLock { $0.byUser.values.flatMap(\.all.values) }
    let frame = Mailbox.Frame(head: nil, bytes: ByteBuffer(string: ": \n\n"))
    for subscription in all { subscription.mailbox.offer(frame) }
  }

  private static func frame(_ status: ZoneStatus, page: [UInt8]?) -> Mailbox.Frame {
    let event = HeadEvent(status: status, page: page.map(WireBytes.init))
    return Mailbox.Frame(head: status, bytes: ByteBuffer(bytes: Self.event("head", event)))
  }

  /// Encodes an event: `id` if there is a position, `event` and one line of JSON.
  static func event(_ name: String, position: FeedPosition? = nil, _ value: some Encodable) -> [UInt8] {
    // Encoding these types cannot fail. If it did, clients would ignore the empty object.
    let data = (try? JSONEncoder().encode(value)).map { [UInt8]($0) } ?? Array("{}".utf8)
    let id = position.map { "id: \($0.text)\n" } ?? ""
    return Array("\(id)event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
  }
}

extension EventHub.State {
  /// Keeps a notice for those of the users whose zones are being read whom it concerns.
  ///
  /// - Returns: the streams of users for whom too much is kept. They must end; their clients open new ones.
  fileprivate mutating func keep(
    _ notice: EventHub.Notice, where concerns: (UserID) -> Bool
  ) -> [EventHub.Subscription] {
    var full: [EventHub.Subscription] = []
    for user in pending where concerns(user) {
      if byUser[user]?.early.count ?? 0 < EventHub.earlyNotices {
        byUser[user]?.early.append(notice)
      } else {
        byUser[user]?.early = []
        full += byUser[user]?.all.values.map { $0 } ?? []
      }
    }
    return full
  }

  /// Returns the streams that get the event. A removed member gets this one and no later one.
  fileprivate mutating func readers(of notice: HeadNotice, only user: UserID?) -> [EventHub.Subscription] {
    let zone = notice.status.zone
    var users = followers[zone] ?? []
    users.insert(notice.owner)
    if let user { users.formIntersection([user]) }
    for gone in notice.removed where users.contains(gone) {
      byUser[gone]?.zones?.remove(zone)
      unfollow(zone, gone)
    }
    return users.flatMap { byUser[$0]?.all.values.map { $0 } ?? [] }
  }

  /// Returns the streams of the user, unless their zones are being read.
  fileprivate mutating func change(_ notice: MembershipNotice) -> [EventHub.Subscription] {
    guard byUser[notice.user]?.zones != nil else { return [] }
    if notice.status == nil {
      byUser[notice.user]?.zones?.remove(notice.zone)
      unfollow(notice.zone, notice.user)
    } else {
      byUser[notice.user]?.zones?.insert(notice.zone)
      followers[notice.zone, default: []].insert(notice.user)
    }
    return byUser[notice.user]?.all.values.map { $0 } ?? []
  }

  fileprivate mutating func unfollow(_ zone: ZoneID, _ user: UserID) {
    followers[zone]?.remove(user)
    if followers[zone]?.isEmpty == true { followers[zone] = nil }
  }
}
