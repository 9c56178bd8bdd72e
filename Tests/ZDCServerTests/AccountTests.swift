import Testing
import ZDCProtocol
import ZDCServer

@Suite struct AccountTests {
  @Test func registeringTwiceIsOneAccount() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let account = try TestAccount()
      let first = try await server.sendJSON(.POST, Routes.accounts, account.registration())
      let second = try await server.sendJSON(.POST, Routes.accounts, account.registration())
      #expect((first.status, second.status) == (201, 200))
      #expect(try first.json(RegisterResponse.self).userID == account.userID)
      #expect(try second.json(RegisterResponse.self) == first.json())
      let token = try await server.login(account)
      let zones: ZoneList = try await server.send(.GET, Routes.zones, token: token).json()
      #expect(Set(zones.zones.map(\.zone)) == Set(Trunk.allCases.map { account.zones[$0]!.zone }))
      #expect(zones.zones.allSatisfy { $0.seq == 0 })
    }
  }

  @Test func aRefusedRegistrationLeavesNothing() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let account = try TestAccount()
      var request = account.registration()
      // The last of four trunks is broken: the first three must not stay.
      request.tree.trunks[3] = request.tree.trunks[2]
      #expect(try await server.sendJSON(.POST, Routes.accounts, request).status == 422)
      let chain = try await server.sendJSON(.POST, Routes.accounts, account.registration())
      #expect(chain.status == 201)
    }
  }

  @Test func anotherKeyringThanTheLinkNamesIsRefused() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      var request = try TestAccount().registration()
      request.keyring.bytes[0] ^= 1
      let answer = try await server.sendJSON(.POST, Routes.accounts, request)
      #expect(answer.error?.security == .keyringMismatch)
    }
  }

  @Test func aLookupIDBelongsToOneAccount() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (first, _) = try await server.newAccount()
      var request = try TestAccount().registration()
      request.lookupID = first.lookupID
      let answer = try await server.sendJSON(.POST, Routes.accounts, request)
      #expect(answer.error?.code == .conflict)
    }
  }

  @Test func registrationByInviteTakesEachCodeOnce() async throws {
    try await TestServer.run {
      $0.registration = .invite
      $0.invites = ["first-code"]
    } _: { (server: TestServer) async throws in
      let account = try TestAccount()
      let without = try await server.sendJSON(.POST, Routes.accounts, account.registration())
      #expect(without.error?.code == .inviteRequired)
      let with = try await server.sendJSON(.POST, Routes.accounts, account.registration(invite: "first-code"))
      #expect(with.status == 201)
      let again = try await server.sendJSON(
        .POST, Routes.accounts, try TestAccount().registration(invite: "first-code"))
      #expect(again.error?.code == .inviteRequired)
    }
  }

  @Test func aClosedServerAcceptsNoAccount() async throws {
    try await TestServer.run {
      $0.registration = .closed
    } _: { (server: TestServer) async throws in
      let answer = try await server.sendJSON(.POST, Routes.accounts, try TestAccount().registration())
      #expect((answer.status, answer.error?.code) == (403, .registrationClosed))
    }
  }

  @Test func chainAndKeyringComeBackAsSent() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let chain = try await server.send(.GET, Routes.path(Routes.chain, account.userID.text), token: token)
      #expect(try chain.items() == [.link(account.genesis)])
      let keyring = try await server.send(.GET, Routes.keyring, token: token)
      #expect(keyring.bytes == account.keyring)
      let stranger = try await server.send(.GET, Routes.path(Routes.chain, UserID.zero.text), token: token)
      #expect(stranger.error?.code == .notFound)
    }
  }

  @Test func linksOfSeveralUsers_comeFromWhereTheyAreKnown() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (alice, token) = try await server.newAccount()
      let (bob, bobsToken) = try await server.newAccount()
      let link = try bob.rotation(to: SigningKey())
      let append = AppendLinkRequest(link: WireBytes(link.bytes))
      #expect(try await server.sendJSON(.POST, Routes.links, append, token: bobsToken).status == 201)
      func links(_ asked: [(UserID, UInt32)]) async throws -> Answer {
        var body = ByteWriter()
        for (user, count) in asked {
          body.append(user)
          body.append(count)
        }
        return try await server.send(.POST, Routes.chains, token: token, body: body.bytes)
      }
      let all = try await links([(bob.userID, 0), (.zero, 0), (alice.userID, 0)]).items()
      #expect(all == [.link(bob.genesis), .link(link), .link(alice.genesis)])
      #expect(try await links([(alice.userID, 1), (bob.userID, 1)]).items() == [.link(link)])
      #expect(try await links([(bob.userID, .max), (bob.userID, 2)]).items() == [])
      #expect(try await server.send(.POST, Routes.chains, token: token, body: [1, 2]).error?.code == .invalidRequest)
      let tooMany = try await links(Array(repeating: (alice.userID, 0), count: Limits.aclEntries + 1))
      #expect(tooMany.error?.code == .limitExceeded)
    }
  }

  @Test func theNextLinkIsTakenOnce_anotherOneIsAConflict() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let link = try account.rotation(to: SigningKey())
      let request = AppendLinkRequest(link: WireBytes(link.bytes))
      #expect(try await server.sendJSON(.POST, Routes.links, request, token: token).status == 201)
      #expect(try await server.sendJSON(.POST, Routes.links, request, token: token).status == 200)
      let other = AppendLinkRequest(link: WireBytes(try account.rotation(to: SigningKey()).bytes))
      #expect(try await server.sendJSON(.POST, Routes.links, other, token: token).error?.code == .conflict)
      // The old signature key signs no commits any more.
      let (_, body) = try account.home.put([account.home.record(.random())])
      #expect(try await server.commit(body, token: token).error?.security == .writerNotAuthorized)
    }
  }

  @Test func anotherAppGetsItsOwnTree_andOnlyOne() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let path = Routes.path(Routes.tree, "org.example.second")
      func births() throws -> [UInt8] {
        try Trunk.allCases.flatMap { trunk in
          try TestZone(owner: account.userID, signKey: account.signKey, trunk: trunk, app: "org.example.second").birth
        }
      }
      let bundle = try births()
      let first = try await server.send(.PUT, path, token: token, body: bundle)
      let again = try await server.send(.PUT, path, token: token, body: bundle)
      #expect((first.status, again.status) == (201, 200))
      #expect(try first.json(ZoneList.self).zones == again.json(ZoneList.self).zones)
      let other = try await server.send(.PUT, path, token: token, body: try births())
      #expect(other.error?.code == .zoneExists)
      let misnamed = try await server.send(
        .PUT, Routes.path(Routes.tree, "org.example.third"), token: token, body: bundle)
      #expect(misnamed.status == 422)
    }
  }

  @Test func theAuditNamesWhatIsHeld() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let content = TestZone.Content()
      let record = zone.record(.random(), content: content.field())
      try await server.put([record], contents: [content], in: &zone, token: token)
      let report: AuditReport = try await server.send(.GET, Routes.audit, token: token).json()
      let titles = [
        "account", "devices", "sessions", "trees", "zones", "stored in own trees", "accepted zones of others",
        "access lists", "mailbox",
      ]
      #expect(report.sections.map(\.title) == titles)
      let stored = Dictionary(uniqueKeysWithValues: report.sections[5].fields.map { ($0.name, $0.value) })
      #expect(stored["sealed contents, bytes"] == "400")
      #expect(stored["signed commits"] == "5")
    }
  }
}
