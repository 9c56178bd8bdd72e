import Foundation
import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCClientAPI
@testable import ZeroDarkCloud

/// How slowly an answer may arrive, in simulated time.
@Suite struct TransferPaceTests {
  /// A network whose answers arrive in slices of equal size, at equal intervals.
  private final class SlowNetwork: Transport {
    private struct State {
      var now = ContinuousClock.now
      var left: Int
      var slices = 0
      var request: TransportRequest?
    }

    private let state: Mutex<State>
    private let slice: Int
    private let pause: Duration
    private let length: Int?

    init(bytes: Int, slice: Int, every pause: Duration, announces: Bool = true) {
      state = Mutex(State(left: bytes))
      (self.slice, self.pause, length) = (slice, pause, announces ? bytes : nil)
    }

    var slices: Int { state.withLock { $0.slices } }
    var now: ContinuousClock.Instant { state.withLock { $0.now } }
    var request: TransportRequest? { state.withLock { $0.request } }

    func pass(_ duration: Duration) { state.withLock { $0.now += duration } }

    func send(_ request: TransportRequest) -> TransportResponse {
      state.withLock { $0.request = request }
      let headers = length.map { ["content-length": "\($0)"] } ?? [:]
      return TransportResponse(status: 200, headers: headers, body: TransportBody { self.next() })
    }

    private func next() -> [UInt8]? {
      state.withLock { state in
        guard state.left > 0 else { return nil }
        let count = min(slice, state.left)
        state.left -= count
        state.slices += 1
        state.now += pause
        return [UInt8](repeating: 0, count: count)
      }
    }

    var connection: ServerConnection {
      get throws {
        ServerConnection(transport: self, address: try ServerAddress("https://a.b"), now: { self.now })
      }
    }
  }

  private static func read(_ network: SlowNetwork) async throws -> Int {
    try await network.connection.answer(to: .get("/v1/x"), limit: 1 << 30).body.count
  }

  @Test("F5: one byte a second ends after a minute, whatever the answer's length", arguments: [1_000, 9 << 20])
  func oneByteASecond_ends(bytes: Int) async throws {
    for announces in [true, false] {
      let network = SlowNetwork(bytes: bytes, slice: 1, every: .seconds(1), announces: announces)
      await #expect(throws: TransportError(.tooSlow, origin: "https://a.b")) { try await Self.read(network) }
      #expect(network.slices == 60)
    }
  }

  @Test("F5: an answer that comes a little too slowly all the time ends at its maximum")
  func wholeAnswer_hasAMaximum() async throws {
    // 119 KiB per minute is too slow, 256 KiB is not, and a short answer has two minutes.
    let slow = SlowNetwork(bytes: 9 << 20, slice: 119 << 10, every: .seconds(60))
    await #expect(throws: TransportError.self) { try await Self.read(slow) }
    #expect(slow.slices == 1)
    #expect(try await Self.read(SlowNetwork(bytes: 9 << 20, slice: 256 << 10, every: .seconds(60))) == 9 << 20)
    let short = SlowNetwork(bytes: 300, slice: 100, every: .seconds(50))
    await #expect(throws: TransportError.self) { try await Self.read(short) }
    var pace = TransferPace(expected: 0)
    let outcomes = [pace.arrived(1 << 20, after: .seconds(119)), pace.arrived(1 << 20, after: .seconds(2))]
    #expect(outcomes == [true, false])
  }

  @Test("F5: fast slices of one byte are an answer")
  func smallSlices_areFine() async throws {
    #expect(try await Self.read(SlowNetwork(bytes: 50_000, slice: 1, every: .milliseconds(1))) == 50_000)
  }

  @Test("F5: a reader that takes its time does not make the answer slow")
  func slowReader_isNotPunished() async throws {
    let network = SlowNetwork(bytes: 100, slice: 1, every: .milliseconds(1))
    let body = try await network.connection.open(.get("/v1/x")).body
    while try await body.next() != nil { network.pass(.seconds(100)) }
    #expect(network.slices == 100)
  }

  @Test("F5: the deadline of an answer's head grows with what is sent")
  func headDeadline_growsWithTheRequest() async throws {
    let network = SlowNetwork(bytes: 1, slice: 1, every: .zero)
    _ = try await network.connection.open(.get("/v1/x"))
    #expect(network.request?.timeout == .seconds(120))
    _ = try await network.connection.open(.bytes(.put, "/v1/x", [UInt8](repeating: 0, count: 8 << 20)))
    #expect(network.request?.timeout == .seconds(120 + 4_096))
  }

  @Test("F5: an event stream may last")
  func eventStream_mayLast() async throws {
    let network = SlowNetwork(bytes: 500, slice: 1, every: .seconds(15))
    var request = TransportRequest.get(Routes.events)
    request.headers["accept"] = "text/event-stream"
    let body = try await network.connection.open(request).body
    #expect(try await body.collect(upTo: 500).count == 500)
  }

  @Test("F4: no pause is longer than the cap, whatever a server asks for")
  func pauses_haveACap() {
    for code in [ServerError.Code.zoneBusy, .tooManyRequests, .shuttingDown] {
      var backoff = Backoff()
      let error = ServerError(code, "m", retryable: true, retryAfterMs: 1 << 62)
      let pauses = (0..<200).map { _ in backoff.next(after: error, random: 0.999) }
      #expect(pauses.allSatisfy { $0 <= 300_100 })
    }
  }

  @Test("F3: a server that names a zone busy for ever is backed off from")
  func busyForEver_isBackedOffFrom() {
    var backoff = Backoff()
    let error = ServerError(.zoneBusy, "m", retryable: true, retryAfterMs: 0)
    let pauses = (0..<120).map { _ in backoff.next(after: error, random: 0.999) }
    #expect(pauses[0] < 250)
    #expect(pauses[119] > 50_000)
    backoff.reset()
    let first = backoff.next(after: error, random: 0)
    #expect(first == 100)
  }

  @Test("F3: content that the server loses repeatedly is sent after pauses that grow to an hour")
  func lostContents_waitLonger() {
    let pauses = (1...20).map { Backoff.pause(losses: $0, random: 0.999) }
    #expect(pauses[0] == 0)
    #expect(pauses[1] >= 15_000)
    #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(pauses.last.map { $0 <= Backoff.longestPauseMs } == true)
  }
}
