import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing
import ZDCProtocol
import ZDCServer

/// The operator's socket: what it shows, and what suspending and quotas do.
@Suite struct AdminTests {
  private struct AdminAnswer {
    var status: UInt
    var body: Data

    func json<T: Decodable>(_ type: T.Type) throws -> T { try JSONDecoder().decode(type, from: body) }
  }

  private final class Operator {
    private let socket: String

    init(socket: String) { self.socket = socket }

    func send(
      _ method: HTTPMethod, _ path: String, _ user: UserID? = nil, body: String? = nil
    ) async throws -> AdminAnswer {
      let base = "http+unix://" + (socket.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
      var request = HTTPClientRequest(
        url: base + path.replacingOccurrences(of: "{userID}", with: user?.text ?? ""))
      request.method = method
      if let body { request.body = .bytes(ByteBuffer(string: body)) }
      let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
      return AdminAnswer(
        status: answer.status.code, body: Data(try await answer.body.collect(upTo: 1 << 20).readableBytesView))
    }
  }

  private func run(
    _ change: (inout Configuration) -> Void = { _ in }, _ body: (TestServer, Operator) async throws -> Void
  ) async throws {
    let socket = "/tmp/zdc-\(UUID().uuidString).sock"
    try await TestServer.run({
      $0.adminSocket = socket
      change(&$0)
    }) { (server: TestServer) async throws in
      // The socket listens a little later than the server.
      while access(socket, W_OK) != 0 { try await Task.sleep(for: .milliseconds(5)) }
      try await body(server, Operator(socket: socket))
    }
    #expect(!FileManager.default.fileExists(atPath: socket), "a stopped server leaves no socket")
  }

  @Test func onlyTheServersUserCanOpenTheSocket() async throws {
    let socket = "/tmp/zdc-\(UUID().uuidString).sock"
    try await TestServer.run({ $0.adminSocket = socket }) { (_: TestServer) async throws in
      func permissions() throws -> Int {
        try #require(
          FileManager.default.attributesOfItem(atPath: socket)[.posixPermissions] as? Int)
      }
      while (try? permissions()) != 0o600 { try await Task.sleep(for: .milliseconds(5)) }
    }
  }

  @Test func aFileThatIsNoSocketStays() async throws {
    let path = "/tmp/zdc-\(UUID().uuidString).txt"
    defer { TestServer.remove(path) }
    try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
    try await TestServer.run({ $0.adminSocket = path }) { (server: TestServer) async throws in
      #expect(try await server.send(.GET, Routes.health).status == 200)
    }
    #expect(FileManager.default.contents(atPath: path) == Data("precious".utf8))
  }

  @Test(.needsFolder) func aSocketThatAKilledServerLeftIsReplaced() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let socket = "/tmp/zdc-\(UUID().uuidString).sock"
    for _ in 0..<2 {
      let server = try await ServerProcess.serve(folder: folder, ["--admin-socket", socket])
      _ = try await server.newAccount()
      #expect(try await ServerProcess.run(["admin", "users", "--socket", socket]).status == 0)
      await server.kill()
    }
    TestServer.remove(socket)
  }

  @Test func adminPathsAreNotServedToTheNetwork() async throws {
    try await run { server, _ in
      let (account, token) = try await server.newAccount()
      let paths = [AdminPaths.users, AdminPaths.user, AdminPaths.suspension, AdminPaths.invites]
      for path in paths.map({ $0.replacingOccurrences(of: "{userID}", with: account.userID.text) }) {
        for method in [Method.GET, .PUT, .DELETE] {
          #expect(try await server.send(method, path, token: token).status == 404)
        }
      }
    }
  }

  /// - three accounts more than fit on a page
  /// => the pages have each account once, in the order of their IDs
  @Test func pagesListEachAccountOnce() async throws {
    try await run { server, admin in
      var made: Set<UserID> = []
      for _ in 0..<203 {
        let account = try TestAccount()
        let row = UserRow(
          id: account.userID, lookup: account.lookupID, loginKey: randomBytes(32), genesis: .zero, linkSeq: 0,
          linkHead: .zero, signGen: 1, encGen: 1, createdMs: 5)
        try await server.store.write([.account(row.id)]) { try $0.insertUser(row) }
        made.insert(row.id)
      }
      let first = try await admin.send(.GET, AdminPaths.users).json(AdminUserPage.self)
      let next = try #require(first.next)
      let second = try await admin.send(.GET, AdminPaths.users + "?after=\(next.text)").json(AdminUserPage.self)
      let all = (first.users + second.users).map(\.userID)
      #expect((first.users.count, second.users.count, second.next) == (200, 3, nil))
      #expect(all == all.sorted() && Set(all) == made)
      #expect(try await admin.send(.GET, AdminPaths.users + "?after=x").status == 400)
    }
  }

  @Test func anAccountIsShownWithWhatItStores() async throws {
    try await run({ $0.bounds.quotaBytes = 5_000_000 }) { server, admin in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let content = TestZone.Content(700)
      try await server.put(
        [zone.record(.random(), content: content.field())], contents: [content], in: &zone, token: token)
      let user = try await admin.send(.GET, AdminPaths.user, account.userID).json(AdminUser.self)
      #expect((user.contentBytes, user.quotaBytes, user.hasOwnQuota) == (700, 5_000_000, false))
      #expect((user.sessions, user.devices, user.suspendedMs, user.closedMs) == (1, 1, nil, nil))
      #expect(user.liveNodes > 0 && user.recordBytes > 0 && user.logBytes > 0)
      #expect(try await admin.send(.GET, AdminPaths.user, try TestAccount().userID).status == 404)
    }
  }

  /// - an account is suspended, twice
  /// => its sessions and its event stream end, the account's login and the device's are refused with `accountSuspended`;
  ///   resumed, both work, and nothing is lost
  @Test func aSuspendedAccountCannotLogIn_untilItIsResumed() async throws {
    try await run { server, admin in
      let (account, token) = try await server.newAccount()
      let (_, other) = try await server.newAccount()
      for _ in 0..<2 { #expect(try await admin.send(.PUT, AdminPaths.suspension, account.userID).status == 204) }
      #expect(try await server.send(.GET, Routes.zones, token: token).status == 401)
      #expect(try await server.send(.GET, Routes.zones, token: other).status == 200)
      func login() async throws -> Answer {
        let challenge = try await server.challenge(account)
        return try await server.sendJSON(.POST, Routes.login, try account.login(challenge, origin: server.origin))
      }
      let refused = try await login()
      #expect((refused.status, refused.error?.code) == (403, .accountSuspended))
      let user = try await admin.send(.GET, AdminPaths.user, account.userID).json(AdminUser.self)
      #expect(user.suspendedMs == server.clock.nowMs && user.sessions == 0 && user.devices == 1)
      #expect(try await admin.send(.DELETE, AdminPaths.suspension, account.userID).status == 204)
      let again = try await login()
      #expect(again.status == 200)
      let fresh = try await server.login(account)
      #expect(try await server.zones(token: fresh).zones.count == 4)
    }
  }

  /// A signature must be right before a stranger learns that an account is suspended.
  @Test func aStrangerDoesNotLearnOfASuspension() async throws {
    try await run { server, admin in
      let (account, _) = try await server.newAccount()
      _ = try await admin.send(.PUT, AdminPaths.suspension, account.userID)
      var forged = try account.login(try await server.challenge(account), origin: server.origin)
      forged.signature.bytes[5] ^= 1
      let refused = try await server.sendJSON(.POST, Routes.login, forged)
      #expect((refused.status, refused.error?.code) == (401, .unauthorized))
    }
  }

  @Test func anAccountsOwnQuotaWins() async throws {
    try await run({ $0.bounds.quotaBytes = 300_000 }) { server, admin in
      let (account, token) = try await server.newAccount()
      func ticket(_ bytes: Int) async throws -> Answer {
        try await server.ticket(BlobTests.Large(bytes), .random(), account.home, token: token)
      }
      #expect(try await ticket(400_000).status == 507)
      #expect(try await admin.send(.PUT, AdminPaths.quota, account.userID, body: #"{"bytes": 500000}"#).status == 204)
      #expect(try await ticket(400_000).status == 201)
      let refused = try await ticket(200_000)
      #expect(refused.error?.quota == ServerError.Quota(used: 400_000, limit: 500_000, needed: 200_000))
      #expect(try await admin.send(.PUT, AdminPaths.quota, account.userID, body: #"{"bytes": 0}"#).status == 204)
      #expect(try await ticket(1_000_000).status == 201)
      #expect(try await admin.send(.DELETE, AdminPaths.quota, account.userID).status == 204)
      #expect(try await ticket(100_000).error?.quota?.limit == 300_000)
      let (_, other) = try await server.newAccount()
      #expect(try await server.send(.GET, Routes.audit, token: other).status == 200)
    }
  }

  @Test func aServerWithoutQuotaRefusesToLimitOne() async throws {
    try await run { server, admin in
      let (account, _) = try await server.newAccount()
      let refused = try await admin.send(.PUT, AdminPaths.quota, account.userID, body: #"{"bytes": 500000}"#)
      #expect(refused.status == 409)
      #expect(try await admin.send(.PUT, AdminPaths.quota, account.userID, body: "[]").status == 400)
    }
  }

  @Test func sessionsAreListedAndEnded() async throws {
    try await run { server, admin in
      let (account, token) = try await server.newAccount()
      let listed = try await admin.send(.GET, AdminPaths.sessions, account.userID).json(AdminSessions.self)
      #expect(listed.sessions.count == 1)
      #expect(try await admin.send(.DELETE, AdminPaths.sessions, account.userID).status == 204)
      #expect(try await server.send(.GET, Routes.zones, token: token).status == 401)
      let fresh = try await server.login(account)
      #expect(try await server.send(.GET, Routes.zones, token: fresh).status == 200)
    }
  }

  @Test func invitesAreListedWithTheirUse() async throws {
    try await run({ ($0.registration, $0.invites) = (.invite, ["spring", "autumn"]) }) { server, admin in
      var request = try TestAccount().registration()
      request.invite = "spring"
      _ = try await server.sendJSON(.POST, Routes.accounts, request).expect(201)
      let invites = try await admin.send(.GET, AdminPaths.invites).json(AdminInvites.self).invites
      #expect(invites.map { "\($0.code) \($0.isUsed)" } == ["autumn false", "spring true"])
    }
  }

  /// The commands of the program, against a server in a separate process.
  @Test(.needsFolder) func theCommandsSayWhatTheyDid() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let socket = "/tmp/zdc-\(UUID().uuidString).sock"
    let server = try await ServerProcess.serve(folder: folder, ["--admin-socket", socket, "--quota", "1000000"])
    let (account, token) = try await server.newAccount()
    let id = account.userID.text
    func admin(_ arguments: String...) async throws -> (status: Int32, output: String) {
      try await ServerProcess.run(["admin"] + arguments + ["--socket", socket])
    }
    let list = try await admin("users")
    #expect(list.status == 0 && list.output.hasPrefix("\(id)  active  ") && list.output.contains(" of 1.0 MB"))
    #expect(try await admin("suspend", id).status == 0)
    #expect(try await server.send(.GET, Routes.zones, token: token).status == 401)
    #expect(try await admin("user", id).output.contains("suspended"))
    #expect(try await admin("resume", id).status == 0)
    #expect(try await admin("quota", id, "unlimited").status == 0)
    #expect(try await admin("user", id).output.contains("unlimited, set for this account"))
    #expect(try await admin("quota", id, "many").status == 64)
    #expect(try await admin("quota", id, "\(UInt64.max)").status == 64, "the server refuses it")
    #expect(try await admin("suspend", "Alice").status == 64)
    #expect(try await admin("suspend", try TestAccount().userID.text).status == 66)
    #expect(try await admin("users", "--json").output.contains("\"userID\":\"\(id)\""))
    #expect(await server.stop() == 0)
    let none = try await admin("users")
    #expect(none.status == 66 && none.output.isEmpty)
  }
}
