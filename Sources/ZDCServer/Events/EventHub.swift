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

  private struct State {
    var nextID: UInt64 = 0
    var byUser: [UserID: [UInt64: Subscription]] = [:]
    var isClosed = false
  }

  private let streamsPerUser: Int
  private let pendingBytes: Int
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "zdc.server.events", qos: .userInitiated)

  init(streamsPerUser: Int, pendingBytes: Int) {
    self.streamsPerUser = streamsPerUser
    self.pendingBytes = pendingBytes
  }

  var openStreams: Int { state.withLock { $0.byUser.values.reduce(0) { $0 + $1.count } } }

  func subscribe(_ session: SessionRow) throws -> Subscription {
    let user = session.user
    return try state.withLock { state in
      guard !state.isClosed else { throw ServerError(.shuttingDown, "the server is stopping", retryable: true) }
      guard state.byUser[user, default: [:]].count < streamsPerUser else {
        throw ServerError(.tooManyRequests, "too many event streams", retryable: true, retryAfterMs: 5_000)
      }
      state.nextID += 1
      let subscription = Subscription(
        id: state.nextID, user: user, device: session.device, session: session.tokenHash,
        expiresMs: session.expiresMs, mailbox: Mailbox(limit: pendingBytes))
      state.byUser[user, default: [:]][subscription.id] = subscription
      return subscription
    }
  }

  func unsubscribe(_ subscription: Subscription) {
    subscription.mailbox.close()
    state.withLock { state in
      state.byUser[subscription.user]?[subscription.id] = nil
      if state.byUser[subscription.user]?.isEmpty == true { state.byUser[subscription.user] = nil }
    }
  }

  /// Called on the store's writer, in commit order.
  func publish(_ notice: HeadNotice) {
    queue.async { self.deliver(notice) }
  }

  private func deliver(_ notice: HeadNotice) {
    let subscribers = state.withLock { state in
      notice.readers.flatMap { state.byUser[$0].map { Array($0.values) } ?? [] }
    }
    var encoded: [UserID: Mailbox.Frame] = [:]
    var common: Mailbox.Frame?
    for subscription in subscribers {
      let frame = common ?? encoded[subscription.user] ?? Self.frame(notice, for: subscription.user)
      if notice.isSameForAll { common = frame } else { encoded[subscription.user] = frame }
      subscription.mailbox.offer(frame)
    }
  }

  /// Ends the streams of expired sessions, and sends a comment line to all others. The line keeps proxies from closing
  /// a quiet stream and detects readers that have disconnected.
  func heartbeat(now: UInt64) {
    close { $0.expiresMs <= now }
    let all = state.withLock { $0.byUser.values.flatMap(\.values) }
    let frame = Mailbox.Frame(head: nil, bytes: ByteBuffer(string: ": \n\n"))
    for subscription in all { subscription.mailbox.offer(frame) }
  }

  /// Ends the streams, of one user or of all, for which `isEnded` returns true.
  func close(of user: UserID? = nil, where isEnded: (Subscription) -> Bool) {
    let ended = state.withLock { state in
      guard let user else { return state.byUser.values.flatMap { $0.values.filter(isEnded) } }
      return state.byUser[user]?.values.filter(isEnded) ?? []
    }
    for subscription in ended { subscription.mailbox.close() }
  }

  func close() {
    let all = state.withLock { state in
      state.isClosed = true
      return state.byUser.values.flatMap(\.values)
    }
    for subscription in all { subscription.mailbox.close() }
  }

  private static func frame(_ notice: HeadNotice, for user: UserID) -> Mailbox.Frame {
    let event = HeadEvent(status: notice.status, page: notice.page(for: user).map(WireBytes.init))
    return Mailbox.Frame(head: notice.status, bytes: ByteBuffer(bytes: Self.event("head", event)))
  }

  /// Encodes an event: `id` if there is a position, `event` and one line of JSON.
  static func event(_ name: String, position: FeedPosition? = nil, _ value: some Encodable) -> [UInt8] {
    // Encoding these types cannot fail. If it did, clients would ignore the empty object.
    let data = (try? JSONEncoder().encode(value)).map { [UInt8]($0) } ?? Array("{}".utf8)
    let id = position.map { "id: \($0.text)\n" } ?? ""
    return Array("\(id)event: \(name)\ndata: ".utf8) + data + Array("\n\n".utf8)
  }
}
