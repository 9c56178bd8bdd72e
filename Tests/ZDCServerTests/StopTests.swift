import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// Ends of servers and of connections.
@Suite struct StopTests {
  /// - SIGTERM while an event stream is open and a part hangs in the middle
  /// => exit 0 in bounded time; the acknowledged part is there; the upload resumes after a restart
  @Test func aStopInMidUploadKeepsWhatWasAcknowledged() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let account = try TestAccount()
    let large = BlobTests.Large()
    let node = NodeID.random()
    var zone = account.home
    let first = try await ServerProcess.serve(folder: folder, ["--drain", "1"])
    _ = try await first.sendJSON(.POST, Routes.accounts, account.registration()).expect(201)
    let token = try await first.login(account)
    var events = try await first.events(token: token).makeAsyncIterator()
    _ = try await events.next()
    _ = try await first.ticket(large, node, zone, token: token).expect(201)
    _ = try await first.part(0, of: large, token: token).expect(204)
    let hanging = try await first.hangingPart(1, of: large, token: token)
    #expect(await first.stop() == 0)
    hanging.cancel()
    #expect(try DataFolder.check(path: folder).findings == [])
    let second = try await ServerProcess.serve(folder: folder)
    let again = try await second.login(account)
    #expect(try await second.parts(of: large, token: again).parts.map(\.index) == [0])
    for index in 1...2 { _ = try await second.part(index, of: large, token: again).expect(204) }
    _ = try await second.complete(large, token: again).expect(200)
    try await second.put([zone.record(node, content: large.field)], in: &zone, token: again)
    #expect(await second.stop() == 0)
    #expect(try DataFolder.check(path: folder).findings == [])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/blobs").count == 2)
  }

  /// - SIGTERM to a server with a delay
  /// => until it is over, the server says that it is not ready and takes commits; its exit status is 0
  @Test func aServerThatIsAboutToStop_answersUntilThen() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let server = try await ServerProcess.serve(folder: folder, ["--stop-delay", "5"])
    let (account, token) = try await server.newAccount()
    var zone = account.home
    #expect(try await server.send(.GET, Routes.ready).status == 200)
    async let status = server.stop()
    while try await server.send(.GET, Routes.ready).status == 200 { try await Task.sleep(for: .milliseconds(10)) }
    try await server.put([zone.record(.random())], in: &zone, token: token)
    #expect(try await server.send(.GET, Routes.health).status == 200)
    #expect(await status == 0)
  }

  @Test func aKilledServerHasWhatItAcknowledged() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let account = try TestAccount()
    var zone = account.home
    let large = BlobTests.Large()
    let server = try await ServerProcess.serve(folder: folder)
    _ = try await server.sendJSON(.POST, Routes.accounts, account.registration()).expect(201)
    let token = try await server.login(account)
    _ = try await server.ticket(large, .random(), zone, token: token).expect(201)
    _ = try await server.part(2, of: large, token: token).expect(204)
    try await server.put([zone.record(.random())], in: &zone, token: token)
    await server.kill()
    let report = try DataFolder.check(path: folder)
    #expect(report.findings == [])
    #expect((report.commits, report.blobs) == (5, 1))
  }

  @Test func slowSenders_areDisconnected_andStreamsAreNot() async throws {
    try await TestServer.run({ ($0.bounds.idleSeconds, $0.bounds.bytesPerWindow) = (1, 100) }) {
      (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      var events = try await server.events(token: token).makeAsyncIterator()
      _ = try await events.next()
      #expect(try await RawConnection.isCutOff(port: server.server.port, after: "") { nil })
      #expect(try await RawConnection.isCutOff(port: server.server.port, after: "POST /v1/auth/challenge HT") { nil })
      let head = "POST /v1/auth/challenge HTTP/1.1\r\nhost: x\r\ncontent-length: 10000\r\n\r\n"
      #expect(try await RawConnection.isCutOff(port: server.server.port, after: head) { " " })
      // The client's own idle connection was cut off as well; if it does not know yet, this request finds out.
      _ = try? await server.send(.GET, Routes.health)
      try await server.put([zone.record(.random())], in: &zone, token: token)
      #expect(try await events.next()?.name == "head")
    }
  }

  @Test func metricsAreForWhoHasTheToken() async throws {
    try await TestServer.run({ $0.metricsToken = "a-token-of-some-length" }) { (server: TestServer) async throws in
      func status(_ header: String?) async throws -> Int {
        let headers = header.map { [("authorization", $0)] } ?? []
        return try await server.send(.GET, Routes.metrics, headers: headers).status
      }
      #expect(try await status(nil) == 404)
      #expect(try await status("Bearer another-token-of-that") == 404)
      #expect(try await status("Bearer a-token-of-some-length") == 200)
    }
  }
}

extension ServerClient {
  /// A part whose first half is with the server and whose second half never comes.
  func hangingPart(_ index: Int, of large: BlobTests.Large, token: [UInt8]) async throws -> Task<Void, Never> {
    let bytes = large.part(index)
    var request = HTTPClientRequest(url: origin + Routes.path(Routes.blobPart, large.blob.text, "\(index)"))
    request.method = .PUT
    request.headers.add(name: "authorization", value: "Bearer \(ZBase32.encode(token))")
    request.headers.add(
      name: WireHeaders.partHash, value: ZBase32.encode(large.hash(ofPart: index, bytes)))
    let (body, more) = AsyncStream<ByteBuffer>.makeStream()
    request.body = .stream(body, length: .known(Int64(bytes.count)))
    let (sent, hasEnded) = (request, Flag())
    let task = Task {
      _ = try? await HTTPClient.shared.execute(sent, timeout: .seconds(60))
      hasEnded.set()
    }
    more.yield(ByteBuffer(bytes: bytes[..<1_000_000]))
    // The server has begun to receive the part once it refuses a second request for it.
    while !hasEnded.isSet {
      if try await part(index, of: large, token: token, isOffer: true).error?.retryable == true { return task }
    }
    // The second one was there first, and it was refused itself.
    return try await hangingPart(index, of: large, token: token)
  }

  /// Offers the part with another hash. The claim of the first sender or the bytes refuse it.
  fileprivate func part(_ index: Int, of large: BlobTests.Large, token: [UInt8], isOffer: Bool) async throws -> Answer {
    try await send(
      .PUT, Routes.path(Routes.blobPart, large.blob.text, "\(index)"), token: token,
      headers: [(WireHeaders.partHash, ZBase32.encode([UInt8](repeating: 1, count: 32)))], body: [1])
  }
}

private final class Flag: Sendable {
  private let value = Mutex(false)

  var isSet: Bool { value.withLock { $0 } }

  func set() { value.withLock { $0 = true } }
}
