import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZDCServer

/// Messages of many accounts to one mailbox, through a real server: 4,000 of 40, or 100,000 of 1,000 with
/// `ZDC_FLOOD_SENDERS=1000`.
@Suite struct MessageFloodTests {
  private typealias User = InboxTests.User

  private static let senders = ProcessInfo.processInfo.environment["ZDC_FLOOD_SENDERS"].flatMap { Int($0) } ?? 40
  private static let messagesOfEach = 100

  /// What has become of the flood's messages.
  private final class Flood: Sendable {
    private let state = Mutex((requests: 0, results: [DeliveryResult: Int]()))

    var requests: Int { state.withLock { $0.requests } }
    var results: [DeliveryResult: Int] { state.withLock { $0.results } }

    func take(_ results: [DeliveryResult]) {
      state.withLock { state in
        state.requests += 1
        for result in results { state.results[result, default: 0] += 1 }
      }
    }

    /// Registers accounts, each of which delivers its messages in one request. Eight do so at the same time.
    func run(_ count: Int, _ server: TestServer, to user: User) async throws {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<count {
          if index >= 8 { try await group.next() }
          group.addTask {
            let sender = try await User(server)
            let envelopes = try (0..<MessageFloodTests.messagesOfEach).map { _ in try sender.envelope(to: user) }
            self.take(try await server.deliver(envelopes, from: sender.token))
          }
        }
        try await group.waitForAll()
      }
    }
  }

  /// - strangers deliver 100 messages each to one user, and a friend writes to another user every 20 requests
  /// => the mailbox stays at its limits, each message of the friend is delivered before a few requests of the flood, and
  ///   the flooded user still gets what the friend sends
  @Test func aFloodStaysBounded_andDelaysNoOtherUser() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (flooded, friend, other) = (try await User(server), try await User(server), try await User(server))
      let tree = try flooded.inbox.zone.tree
      try await server.set(friend.id, .accepted, tree, token: flooded.token)
      try await server.set(friend.id, .accepted, other.inbox.zone.tree, token: other.token)
      let flood = Flood()
      let turn = 20
      var longest = 0
      for _ in 0..<Self.senders / turn {
        async let running: Void = flood.run(turn, server, to: flooded)
        let before = flood.requests
        #expect(try await server.deliver([friend.envelope(to: other)], from: friend.token) == [.delivered])
        longest = max(longest, flood.requests - before)
        try await running
      }
      #expect(longest < turn, "a message of another user waited for \(longest) requests of the flood")
      let all = Self.senders * Self.messagesOfEach
      #expect(flood.results == [.delivered: 100, .mailboxFull: all - 100])
      #expect(try await server.deliver([friend.envelope(to: flooded)], from: friend.token) == [.delivered])
      let waiting = try await server.inbox(tree, token: flooded.token)
      #expect(waiting.messages.count == 101 && waiting.next == nil)
      #expect(try await server.inbox(other.inbox.zone.tree, token: other.token).messages.count == Self.senders / turn)
      let user = flooded.id
      let counts = try await server.store.read { try $0.inboxCounts(of: user) }
      #expect(counts.envelopes == 101 && counts.senders <= 3)
      #expect(counts.bytes <= 8 << 20)
    }
  }
}
