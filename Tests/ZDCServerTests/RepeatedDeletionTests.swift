import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// A restored backup does not undo what ended someone's access after it was made.
@Suite(.needsFolder) struct RepeatedDeletionTests {
  /// A server's folder, a backup of it, and a folder for what is restored.
  private struct Folders {
    let data = TestServer.newFolder()
    let backup = TestServer.newFolder()
    let restored = TestServer.newFolder()

    var list: String { "\(data)/\(DeletionFile.defaultName)" }

    func backUp() async throws {
      let run = try await ServerProcess.run(["backup", backup, "--data", data])
      #expect(run.status == 0, "\(run.output)")
    }

    @discardableResult
    func restore(_ lists: [String]? = nil) async throws -> (status: Int32, output: String) {
      let options = (lists ?? [list]).flatMap { ["--deletions", $0] }
      return try await ServerProcess.run(["restore", backup, "--to-data", restored] + options)
    }

    /// Runs the server until `change` has ended, with a backup made in between, and restores that with the server's list.
    func restored<T>(
      before: (TestServer) async throws -> T, after change: (TestServer, T) async throws -> Void
    ) async throws -> (value: T, output: String) {
      let value = try await TestServer.run(in: data) { (server: TestServer) async throws in
        let value = try await before(server)
        try await backUp()
        server.clock.advance(ms: 1_000)
        try await change(server, value)
        return value
      }
      try DeletionFile(path: list).create()
      let run = try await restore()
      #expect(run.status == 0, "\(run.output)")
      #expect(try DataFolder.check(path: restored).findings == [])
      return (value, run.output)
    }
  }

  private static func with(_ body: (Folders) async throws -> Void) async throws {
    let folders = Folders()
    defer { for folder in [folders.data, folders.backup, folders.restored] { TestServer.remove(folder) } }
    try await body(folders)
  }

  private static func deviceLogin(_ account: TestAccount, _ server: some ServerClient) async throws -> Int {
    let challenge: ChallengeResponse = try await server.sendJSON(
      .POST, Routes.challenge, ChallengeRequest(userID: account.userID)
    ).json()
    let login = try account.deviceLogin(challenge, origin: server.origin)
    return try await server.sendJSON(.POST, Routes.deviceLogin, login).status
  }

  private static func chain(_ account: TestAccount, _ token: [UInt8], _ server: TestServer) async throws -> [UInt8] {
    try await server.send(.GET, Routes.path(Routes.chain, account.userID.text), token: token).expect(200).bytes
  }

  /// => its session and its key are refused; the device that has removed it works
  @Test func aRemovedDeviceStaysRemoved() async throws {
    try await Self.with { (folders: Folders) async throws in
      let (value, output) = try await folders.restored { server in
        let (account, lost) = try await server.newAccount()
        return (account, lost, try await server.login(account, device: .random()))
      } after: { server, value in
        let path = Routes.path(Routes.sessionOfDevice, value.0.deviceID.text)
        _ = try await server.send(.DELETE, path, token: value.2).expect(204)
      }
      let (account, lost, kept) = value
      #expect(output.contains("; 1 devices removed again\n"))
      try await TestServer.run(in: folders.restored) { (server: TestServer) async throws in
        #expect(try await server.send(.GET, Routes.zones, token: lost).status == 401)
        #expect(try await Self.deviceLogin(account, server) == 401)
        #expect(try await server.send(.GET, Routes.zones, token: kept).status == 200)
      }
    }
  }

  /// - A device is removed, and logs in with the words again before the backup is made
  /// => it stays
  @Test func aDeviceThatHasLoggedInAgainStays() async throws {
    try await Self.with { (folders: Folders) async throws in
      let (account, _) = try await folders.restored { server in
        let (account, _) = try await server.newAccount()
        let other = try await server.login(account, device: .random())
        let path = Routes.path(Routes.sessionOfDevice, account.deviceID.text)
        _ = try await server.send(.DELETE, path, token: other).expect(204)
        server.clock.advance(ms: 1)
        _ = try await server.login(account)
        return account
      } after: { _, _ in
      }
      try await TestServer.run(in: folders.restored) { (server: TestServer) async throws in
        #expect(try await Self.deviceLogin(account, server) == 200)
      }
    }
  }

  /// - After the backup, a device changes the words
  /// => old words and the other devices are refused, the new words log in, and devices find the chain that they have seen
  @Test func oldWordsStayEnded() async throws {
    let (lookup, login) = (LookupID.random(), SigningKey())
    try await Self.with { (folders: Folders) async throws in
      var chain: [UInt8] = []
      let (value, output) = try await folders.restored { server in
        let (account, lost) = try await server.newAccount()
        return (account, lost, try await server.login(account, device: .random()))
      } after: { server, value in
        let link = AppendLinkRequest(
          link: WireBytes(try value.0.rootRotation(to: SigningKey()).bytes), lookupID: lookup,
          loginKey: WireBytes(login.publicBytes))
        _ = try await server.sendJSON(.POST, Routes.links, link, token: value.2).expect(201)
        chain = try await Self.chain(value.0, value.2, server)
      }
      let (account, lost, kept) = value
      #expect(output.contains("; 1 changes of keys, words and handles repeated\n"))
      try await TestServer.run(in: folders.restored) { (server: TestServer) async throws in
        #expect(try await server.send(.GET, Routes.zones, token: lost).status == 401)
        #expect(try await Self.deviceLogin(account, server) == 401)
        let old = try account.login(try await server.challenge(account), origin: server.origin)
        #expect(try await server.sendJSON(.POST, Routes.login, old).status == 401)
        #expect(try await Self.chain(account, kept, server) == chain)
        let user = try #require(try await server.store.read { try $0.user(lookup: lookup) })
        #expect(user.id == account.userID && user.loginKey == login.publicBytes)
      }
    }
  }

  /// - After the backup, the operator suspends one account, suspends and resumes another, and resumes a third
  /// => the first one is suspended, and nothing else
  @Test func theOperatorsLastWordCounts() async throws {
    try await Self.with { (folders: Folders) async throws in
      let socket = "/tmp/zdc-\(UUID().uuidString).sock"
      let server = try await ServerProcess.serve(folder: folders.data, ["--admin-socket", socket])
      var accounts: [TestAccount] = []
      for _ in 0..<3 { accounts.append(try await server.newAccount().account) }
      func admin(_ command: String, _ account: TestAccount) async throws {
        let run = try await ServerProcess.run(["admin", command, account.userID.text, "--socket", socket])
        #expect(run.status == 0, "\(run.output)")
      }
      try await admin("suspend", accounts[2])
      try await folders.backUp()
      for command in ["suspend", "suspend"] { try await admin(command, accounts[0]) }
      for command in ["suspend", "resume"] { try await admin(command, accounts[1]) }
      for command in ["resume", "resume"] { try await admin(command, accounts[2]) }
      #expect(await server.stop() == 0)
      let lines = try TestServer.bytes(of: folders.list).count { $0 == UInt8(ascii: "\n") }
      #expect(lines == 5, "only changes are listed")
      let run = try await folders.restore()
      #expect(run.status == 0 && run.output.contains("; 1 accounts suspended again\n"), "\(run.output)")
      try await TestServer.run(in: folders.restored) { (server: TestServer) async throws in
        for (account, status) in zip(accounts, [403, 200, 200]) {
          let login = try account.login(try await server.challenge(account), origin: server.origin)
          #expect(try await server.sendJSON(.POST, Routes.login, login).status == status)
        }
      }
    }
  }

  // MARK: - Chains

  private static func handle(_ name: String) throws -> IdentityLink.Claim {
    let handle: Handle = try #require(Handle(typed: name))
    return .handle(handle)
  }

  /// The links that give the account one handle after the other.
  private static func claims(_ names: [String], of account: TestAccount) throws -> [IdentityLink] {
    try names.reduce(into: [account.genesis]) { links, name in
      links.append(try account.claims([handle(name)], after: links[links.count - 1]))
    }.suffix(names.count)
  }

  private static func note(_ links: [IdentityLink], of account: TestAccount, ms: UInt64 = 7, in list: String) throws {
    try DeletionFile(path: list).note(
      links.map { link in
        .link(AppendLinkRequest(link: WireBytes(link.bytes)), of: account.userID, by: account.deviceID, ms: ms)
      })
  }

  /// - The links of an account are in the lists of two servers in turn
  /// => all are appended; with one list alone, the rest is counted
  @Test func linksOfSeveralServersAreJoined() async throws {
    try await Self.with { (folders: Folders) async throws in
      let account = try await TestServer.run(in: folders.data) { try await $0.newAccount().account }
      try await folders.backUp()
      let links = try Self.claims(["alice", "bella", "carol", "diana"], of: account)
      let lists = ["\(folders.data)/one", "\(folders.data)/two"]
      try Self.note([links[1], links[3]], of: account, in: lists[0])
      try Self.note([links[0], links[2]], of: account, in: lists[1])
      let half = try await folders.restore([lists[1]])
      let change = "; 1 changes of keys, words and handles"
      #expect(half.output.contains("\(change) repeated\(change) not repeated"), "\(half.output)")
      TestServer.remove(folders.restored)
      let run = try await folders.restore(lists)
      #expect(run.output.contains("; 4 changes of keys, words and handles repeated\n"), "\(run.output)")
      try await TestServer.run(in: folders.restored) { (server: TestServer) async throws in
        #expect(try await server.store.read { try $0.links(of: account.userID).count } == 5)
        let handles = try await server.store.read { try $0.handles(of: account.userID) }
        #expect(handles.map(\.handle.text) == ["carol", "diana"])
      }
    }
  }

  /// - The store failed after a link was noted, and another link took its place
  /// => the chain has the other one, in whatever order the lists are given
  @Test func aLinkThatTheStoreLost_isNotRepeated() async throws {
    try await Self.with { (folders: Folders) async throws in
      let account = try await TestServer.run(in: folders.data) { try await $0.newAccount().account }
      try await folders.backUp()
      let (lost, kept) = (try Self.claims(["lost"], of: account), try Self.claims(["kept", "more"], of: account))
      let lists = ["\(folders.data)/one", "\(folders.data)/two"]
      try Self.note(kept, of: account, ms: 9, in: lists[0])
      try Self.note(lost, of: account, ms: 8, in: lists[1])
      for lists in [lists, lists.reversed()] {
        #expect(try await folders.restore(lists).status == 0)
        try await TestServer.run(in: folders.restored) { (server: TestServer) async throws in
          let links = try await server.store.read { try $0.links(of: account.userID) }
          #expect(links == [account.genesis.bytes] + kept.map(\.bytes))
        }
        TestServer.remove(folders.restored)
      }
    }
  }

  /// => a list with a link that the owner did not sign is refused, and no server opens the new folder
  @Test func aForgedLinkIsRefused() async throws {
    try await Self.with { (folders: Folders) async throws in
      let account = try await TestServer.run(in: folders.data) { try await $0.newAccount().account }
      try await folders.backUp()
      var forged = try Self.claims(["alice"], of: account)[0].bytes
      forged[forged.count - 1] ^= 1
      try Self.note([try IdentityLink(forged)], of: account, in: folders.list)
      #expect(try await folders.restore().status == 65)
      #expect(!DataFolder.exists(folders.restored))
    }
  }

  // MARK: - Repeated runs

  /// - A restore ends after everything was copied, because the list of deletions cannot be written
  /// => no server opens the new folder; the same command completes it, and the list has each deletion once
  @Test func aRestoreThatWasStopped_isCompletedByTheSameCommand() async throws {
    try await Self.with { (folders: Folders) async throws in
      let account = try await TestServer.run(in: folders.data) { (server: TestServer) async throws in
        let (account, token) = try await server.newAccount()
        try await folders.backUp()
        let link = AppendLinkRequest(link: WireBytes(try account.closing().bytes))
        _ = try await server.sendJSON(.POST, Routes.links, link, token: token).expect(201)
        return account
      }
      let list = "\(folders.restored)/\(DeletionFile.defaultName)"
      try FileManager.default.createDirectory(atPath: list, withIntermediateDirectories: true)
      #expect(try await folders.restore().status != 0)
      let serve = ["serve", "--data", folders.restored, "--listen", "127.0.0.1:0"]
      #expect(try await ServerProcess.run(serve).status != 0)
      TestServer.remove(list)
      let run = try await folders.restore()
      #expect(run.status == 0 && run.output.contains("; 1 accounts closed again\n"), "\(run.output)")
      #expect(try TestServer.bytes(of: list) == TestServer.bytes(of: folders.list))
      try await TestServer.run(in: folders.restored) { (server: TestServer) async throws in
        #expect(try await server.store.read { try $0.user(account.userID)?.isClosed } == true)
      }
    }
  }
}
