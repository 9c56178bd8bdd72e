import NIOCore
import Testing
import ZDCProtocol

@testable import ZDCServer

@Suite struct UnitTests {
  /// The policy of all routes as text: a change here is a change of who may do what.
  @Test func everyRouteWithItsAuthAndItsLimit() {
    let table = RouteTable.all.map { "\($0.method) \($0.path) \($0.auth) \($0.bodyLimit)" }
    #expect(
      table.joined(separator: "\n") == """
        GET /healthz open 0
        GET /readyz open 0
        GET /metrics open 0
        GET /v1/info open 0
        POST /v1/accounts limited 131072
        POST /v1/auth/challenge limited 16384
        POST /v1/auth/login limited 16384
        POST /v1/auth/device limited 16384
        DELETE /v1/auth/session session 0
        GET /v1/auth/sessions session 0
        DELETE /v1/auth/sessions/{deviceID} session 0
        PUT /v1/device-links/{linkID} limited 1248
        GET /v1/device-links/{linkID} session 0
        PUT /v1/device-links/{linkID}/answer session 32768
        GET /v1/device-links/{linkID}/answer limited 0
        PUT /v1/device-links/{linkID}/nonce limited 32
        GET /v1/device-links/{linkID}/nonce session 0
        GET /v1/account/keyring session 0
        POST /v1/account/links session 139264
        GET /v1/account/audit session 0
        GET /v1/users/{userID}/chain session 0
        POST /v1/users/chains session 36864
        GET /v1/handles/{handle} session 0
        PUT /v1/trees/{appTreeID} session 8388608
        GET /v1/zones session 0
        POST /v1/zones/commits session 3584
        PUT /v1/memberships/{treeID}/{zoneRoot} session 0
        DELETE /v1/memberships/{treeID}/{zoneRoot} session 0
        GET /v1/events session 0
        POST /v1/commits session 8388608
        GET /v1/trees/{treeID}/zones/{zoneRoot}/commits session 0
        GET /v1/trees/{treeID}/zones/{zoneRoot}/state session 0
        POST /v1/trees/{treeID}/zones/{zoneRoot}/records session 48000
        POST /v1/trees/{treeID}/zones/{zoneRoot}/contents session 32000
        POST /v1/trees/{treeID}/zones/{zoneRoot}/kept session 48000
        GET /v1/trees/{treeID}/nodes/{nodeID} session 0
        POST /v1/messages session 8388608
        GET /v1/trees/{treeID}/messages session 0
        POST /v1/trees/{treeID}/messages/read session 48000
        DELETE /v1/trees/{treeID}/messages/{userID}/{messageID} session 0
        PUT /v1/trees/{treeID}/senders/{userID} session 16384
        DELETE /v1/trees/{treeID}/senders/{userID} session 0
        GET /v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID} session 0
        GET /v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}/leaves session 0
        GET /v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}/proof session 0
        POST /v1/blobs session 16384
        PUT /v1/blobs/{blobID}/parts/{index} session 0
        GET /v1/blobs/{blobID}/parts session 0
        POST /v1/blobs/{blobID}/complete session 0
        DELETE /v1/blobs/{blobID} session 0
        """)
  }

  @Test func aReaderWhoDoesNotReadIsCutOff() async {
    let mailbox = Mailbox(limit: 100)
    let zone = ZoneID(tree: .random(), root: .random())
    let status = ZoneStatus(zone: zone, seq: 1, head: .random())
    let frame = Mailbox.Frame(head: status, bytes: ByteBuffer(repeating: 0, count: 40))
    mailbox.offer(frame)
    mailbox.offer(frame)
    #expect(await mailbox.next()?.head == status)
    mailbox.offer(frame)
    mailbox.offer(frame)
    #expect(await mailbox.next() == nil)
    #expect(await mailbox.next() == nil)
  }

  @Test func closingAMailboxWakesItsReader() async {
    let mailbox = Mailbox(limit: 100)
    let reader = Task { await mailbox.next() }
    mailbox.close()
    #expect(await reader.value == nil)
  }

  @Test func ranges() throws {
    #expect(try ByteRange.parse(nil, length: 10) == nil)
    #expect(try ByteRange.parse("bytes=0-4", length: 10) == 0..<5)
    #expect(try ByteRange.parse("bytes=5-", length: 10) == 5..<10)
    #expect(try ByteRange.parse("bytes=5-99", length: 10) == 5..<10)
    #expect(try ByteRange.parse("bytes=-3", length: 10) == 7..<10)
    #expect(try ByteRange.parse("bytes=-30", length: 10) == 0..<10)
    #expect(try ByteRange.parse("bytes=0-1,3-4", length: 10) == nil)
    for wrong in ["bytes=10-", "bytes=4-3", "bytes=-0", "bytes=x-3", "bytes=18446744073709551616-"] {
      #expect(throws: ServerError.self) { try ByteRange.parse(wrong, length: 10) }
    }
  }

  @Test func originsAreComparedInOneForm() {
    var configuration = Configuration()
    #expect(configuration.effectiveOrigins(port: 7_342).contains("http://localhost:7342"))
    #expect(configuration.effectiveOrigins(port: 80).contains("http://127.0.0.1"))
    configuration.origins = ["HTTPS://Sync.Example.org:443/"]
    #expect(configuration.effectiveOrigins(port: 1) == ["https://sync.example.org"])
    #expect(!configuration.isDevelopment)
    for local in ["http://127.0.0.1:8080", "https://localhost", "http://[::1]:1"] {
      configuration.origins = [local]
      #expect(configuration.isDevelopment, "\(local)")
    }
    configuration.origins = ["https://localhost.example.org", "http://127.0.0.1"]
    #expect(!configuration.isDevelopment)
    configuration.host = "0.0.0.0"
    #expect(configuration.effectiveRegistration == .invite)
  }

  @Test func nestingIsCountedOutsideOfStrings() {
    #expect(JSONForm.isAcceptable(Array(#"{"a":"[[[[\"[[["}"#.utf8), depth: 1))
    #expect(!JSONForm.isAcceptable(Array("[[1]]".utf8), depth: 1))
  }

  @Test func aChallengeIsOnlyOurs_untilItsEnd() {
    let challenges = Challenges(key: [1])
    let nonce = challenges.make(now: 1_000, lifetimeMs: 100).nonce.bytes
    #expect(challenges.isValid(nonce: nonce, expiresMs: 1_100, now: 1_099))
    #expect(!challenges.isValid(nonce: nonce, expiresMs: 1_100, now: 1_100))
    #expect(!challenges.isValid(nonce: nonce, expiresMs: 1_101, now: 1_000))
    #expect(!Challenges(key: [2]).isValid(nonce: nonce, expiresMs: 1_100, now: 1_000))
  }

  // MARK: Used challenges

  private static func nonce(_ number: Int) -> [UInt8] { withUnsafeBytes(of: UInt64(number), Array.init) }

  /// Uses challenges, and returns how many of them were not used before.
  private static func use(_ numbers: Range<Int>, of used: inout UsedNonces, expiresMs: UInt64, now: UInt64) -> Int {
    numbers.count { used.use(nonce($0), expiresMs: expiresMs, now: now) }
  }

  @Test func aChallengeIsUsedOnce() {
    var used = UsedNonces()
    let first = Self.use(0..<3, of: &used, expiresMs: 10, now: 0)
    let again = Self.use(1..<4, of: &used, expiresMs: 10, now: 1)
    #expect((first, again) == (3, 1))
  }

  @Test func usedChallengesAreRememberedUntilTheyExpire_andNotForLong() {
    var used = UsedNonces()
    let first = Self.use(0..<5_000, of: &used, expiresMs: 10, now: 0)
    let again = Self.use(0..<5_000, of: &used, expiresMs: 10, now: 9)
    #expect((first, again, used.count) == (5_000, 0, 5_000))
    #expect(Self.use(5_000..<15_000, of: &used, expiresMs: 20, now: 10) == 10_000)
    #expect(used.count < 15_000)
    #expect(Self.use(15_000..<40_000, of: &used, expiresMs: 30, now: 20) == 25_000)
    #expect(used.count < 30_000)
  }
}
