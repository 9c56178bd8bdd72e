import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCServer
import ZDCTreesystem

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZDCClientStore
@testable import ZeroDarkCloud

@Suite struct AccountTests {
  // MARK: Creating

  @Test func aNewAccountIsALocalUser_withItsTrunksPinnedAndItsWordsAtHand() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let (user, words) = try await device.users.createAccount()
      #expect(words.count == 24)
      #expect(try await device.users.allLocalUsers() == [user])
      #expect(try await device.users.allLocalUserIDs() == [user.uuid])
      #expect(try await device.users.localUser(id: user.uuid) == user)
      #expect(try await device.users.accessWords(for: user.uuid) == words)
      #expect(user.serverOrigin == world.server.url)
      let zones = try await device.zones(of: user)
      #expect(zones.map(\.trunk) == Trunk.allCases)
      #expect(zones.allSatisfy { $0.head?.seq == 0 && $0.key != nil })
      let heads = try await device.api(user).zones(since: nil).zones
      #expect(Set(heads.map(\.head)) == Set(zones.compactMap { $0.head?.hash }))
      for zone in zones {
        let root = try await device.connection.asyncRead { try $0.nodes.root(zone: zone.id) }
        #expect(root?.nodeID == zone.zone.root)
      }
    }
  }

  /// - the request or its answer is lost, or the process ends before the answer is stored
  /// => the same call resumes with the same account, and the server has only one
  @Test(arguments: ["request lost", "answer lost", "killed after the answer"])
  func cutDuringCreation_theSameCallResumes(how: String) async throws {
    try await NetworkWorld.run { world in
      let once = Once()
      let hooks = HookedTransport.Hooks(
        before: { request in
          let isLost = how == "request lost" && request.path == Routes.accounts && once.take()
          if isLost { throw TransportError(.cut) }
        },
        after: { request, response in
          let isLost = how != "request lost" && request.path == Routes.accounts && once.take()
          if isLost { throw TransportError(.cut) }
          return response
        })
      var device = try world.device("a", hooks: hooks)
      await #expect(throws: TransportError(.cut)) { try await device.users.createAccount() }
      #expect(try await device.users.allLocalUsers() == [])
      let stored = try await device.storedUserIDs()
      #expect(stored.count == 1)
      if how.hasPrefix("killed") {
        try device.close()
        device = try world.device("a")
      }
      let (user, words) = try await device.users.createAccount()
      #expect(stored == [try ZDCLocalUserManager.userID(user.uuid)])
      #expect(try await device.users.allLocalUserIDs() == [user.uuid])
      // The words open the account that the server has.
      let other = try world.device()
      #expect(try await other.users.login(words: words).uuid == user.uuid)
    }
  }

  @Test func beforeAnythingIsStored_nothingIsSentButTheQuestionWhoIsThere() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      device.transport.set(.init(before: { _ in throw TransportError(.offline) }))
      await #expect(throws: TransportError(.offline)) { try await device.users.createAccount() }
      #expect(device.transport.requests == ["GET /v1/info"])
      #expect(try await device.storedUserIDs() == [])
    }
  }

  @Test func theSecretsAreStoredBeforeTheRequestIsSent() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      device.transport.set(
        .init(before: { [device] request in
          guard request.path == Routes.accounts else { return }
          let rows = try await device.connection.asyncRead { try $0.localUsers.all() }
          #expect(rows.count == 1)
          #expect(rows.first?.state == .creating)
          guard case .bytes(let body) = request.body else { throw TransportError(.cut) }
          #expect(rows.first?.secrets.request == body)
        }))
      _ = try await device.users.createAccount()
      let rows = try await device.connection.asyncRead { try $0.localUsers.all() }
      #expect(rows.first?.secrets.request == [])
      device.transport.set(.init())
    }
  }

  @Test func aSecondAccountIsAnotherOne() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let first = try await device.users.createAccount()
      let second = try await device.users.createAccount()
      #expect(first.localUser.uuid != second.localUser.uuid)
      #expect(first.words != second.words)
      #expect(try await device.users.allLocalUserIDs() == [first.localUser.uuid, second.localUser.uuid])
    }
  }

  /// - the app ends after the account was created and before it has shown the words to the user
  /// => the next launch's first call returns the same account; a second call creates another one
  @Test func killedAfterTheLastStep_theSameAccountIsReturned() async throws {
    try await NetworkWorld.run { world in
      var device = try world.device("a")
      let first = try await device.users.createAccount()
      for _ in 0..<2 {
        try device.close()
        device = try world.device("a")
        let again = try await device.users.createAccount()
        #expect(again.localUser == first.localUser)
        #expect(again.words == first.words)
        #expect(device.transport.requests == [])
      }
      let second = try await device.users.createAccount()
      #expect(second.localUser.uuid != first.localUser.uuid)
      #expect(try await device.users.allLocalUsers() == [first.localUser, second.localUser])
    }
  }

  @Test(arguments: ["words asked for", "node created", "logged in"])
  func anAccountInUse_isNotReturnedAgain(how: String) async throws {
    try await NetworkWorld.run { world in
      var device = try world.device("a")
      let (first, words) = try await device.users.createAccount()
      switch how {
      case "words asked for": _ = try await device.users.accessWords(for: first.uuid)
      case "logged in": _ = try await device.users.login(words: words)
      default:
        try await device.connection.asyncReadWrite { transaction in
          let cloud = transaction.writableCloud(forLocalUserID: first.uuid, treeID: NetworkWorld.treeID)
          try cloud?.createNode(withPath: ZDCTreesystemPath(pathComponents: ["f"]))
        }
      }
      try device.close()
      device = try world.device("a")
      #expect(try await device.users.createAccount().localUser.uuid != first.uuid)
    }
  }

  @Test func withoutAnInvitation_thenWithOne_theAccountStaysTheSame() async throws {
    try await NetworkWorld.run({
      $0.registration = .invite
      $0.invites = ["welcome"]
    }) { world in
      let device = try world.device()
      let missing = await #expect(throws: ServerError.self) { try await device.users.createAccount() }
      #expect(missing?.code == .inviteRequired)
      let wrong = await #expect(throws: ServerError.self) { try await device.users.createAccount(invite: "no") }
      #expect(wrong?.code == .inviteRequired)
      let stored = try await device.storedUserIDs()
      let user = try await device.users.createAccount(invite: "welcome").localUser
      #expect(stored == [try ZDCLocalUserManager.userID(user.uuid)])
    }
  }

  @Test func aClosedServerSaysSo() async throws {
    try await NetworkWorld.run({ $0.registration = .closed }) { world in
      let device = try world.device()
      let error = await #expect(throws: ServerError.self) { try await device.users.createAccount() }
      #expect(error?.code == .registrationClosed)
    }
  }

  // MARK: Logging in

  @Test func theWordsAreTheAccount_onAnyDevice() async throws {
    try await NetworkWorld.run { world in
      let first = try world.device()
      let (user, words) = try await first.users.createAccount()
      let second = try world.device()
      let typed = [" \(words[0].uppercased())"] + words.dropFirst()
      #expect(try await second.users.login(words: typed).uuid == user.uuid)
      let zones = try await second.zones(of: user)
      #expect(zones.map(\.trunk) == Trunk.allCases)
      #expect(zones.allSatisfy { $0.head == nil && $0.key == nil })
      #expect(zones.map(\.zone) == (try await first.zones(of: user).map(\.zone)))
      let userID = try ZDCLocalUserManager.userID(user.uuid)
      let keys = try await (first.users.keys(for: userID), second.users.keys(for: userID))
      #expect(keys.0.signingKey == keys.1.signingKey)
      #expect(keys.0.identity == keys.1.identity)
      // The login's session stays in use.
      _ = try await second.api(user).zones(since: nil)
      #expect(second.transport.count("/v1/auth/challenge") == 1)
    }
  }

  @Test func loggingInAgain_keepsOneUserAndItsDevice() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let (user, words) = try await device.users.createAccount()
      let before = try await device.zones(of: user)
      #expect(try await device.users.login(words: words).uuid == user.uuid)
      #expect(try await device.users.allLocalUserIDs() == [user.uuid])
      #expect(try await device.zones(of: user).map(\.head) == before.map(\.head))
      #expect(try await device.api(user).sessions().sessions.count == 1)
    }
  }

  @Test func wordsThatAreNoAccessKey_areRefusedWithoutARequest() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      // Fixed words: one in 256 random keys is also valid with another first word.
      let words = [String](repeating: "abandon", count: 23) + ["art"]
      let cases = [
        Array(words.dropLast()), ["zebra"] + Array(words.dropFirst()), Array(words.dropLast()) + ["zzz"],
        Array(words.reversed()), [],
      ]
      for wrong in cases where wrong != words {
        await #expect(throws: ZDCError.self) { try await device.users.login(words: wrong) }
      }
      #expect(device.transport.requests == [])
    }
  }

  @Test func wordsOfNoAccount_areReportedAndStoreNothing() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let error = await #expect(throws: ZDCError.self) {
        try await device.users.login(words: AccessKey.random().words)
      }
      #expect(error?.code == .accountNotFound)
      #expect(try await device.storedUserIDs() == [])
    }
  }

  /// The server returns something other than the account's state: no keys are created, and nothing is stored.
  @Test(arguments: [
    ("empty chain", ZDCSecurityError.Code.accountStateMissing), ("no chain", .accountStateMissing),
    ("no keyring", .accountStateMissing), ("another user's chain", .userIDMismatch),
    ("altered keyring", .keyringAuthFailed), ("altered chain", .identityChainInvalid),
  ])
  func aServerThatGivesSomethingElse_isFoundOut(what: String, code: ZDCSecurityError.Code) async throws {
    try await NetworkWorld.run { world in
      let words = try await world.device().users.createAccount().words
      let stranger = try world.device()
      let strangersChain = try await stranger.api(try await stranger.users.createAccount().localUser)
        .chain(of: try await stranger.storedUserIDs()[0])
      let device = try world.device()
      device.transport.set(
        .init(after: { request, response in
          let isChain = request.path.hasSuffix("/chain")
          let isKeyring = request.path == Routes.keyring
          guard isChain || isKeyring, what.hasSuffix(isChain ? "chain" : "keyring") else { return response }
          if what.hasPrefix("no ") {
            let body = #"{"code":"notFound","message":"m","retryable":false}"#
            return TransportResponse(
              status: 404, headers: ["content-type": "application/json"], body: TransportBody(bytes: Array(body.utf8)))
          }
          var bytes = try await response.body.collect(upTo: 1 << 20)
          switch what {
          case "empty chain": bytes = []
          case "another user's chain": bytes = strangersChain
          default: bytes[bytes.count - 40] ^= 1
          }
          return TransportResponse(status: 200, headers: response.headers, body: TransportBody(bytes: bytes))
        }))
      let error = await #expect(throws: ZDCSecurityError.self) { try await device.users.login(words: words) }
      #expect(error?.code == code)
      #expect(try await device.storedUserIDs() == [])
    }
  }

  @Test func aChainThatDoesNotBelongToTheWords_isARollback() throws {
    let birth = try NewAccount(accessKey: .random(), appTreeID: NetworkWorld.treeID, timeMs: 1)
    var chain = Bundle.Writer()
    chain.append(link: birth.genesis.bytes)
    #expect(throws: ZDCSecurityError(.identityChainRollback, user: birth.userID)) {
      try UserKeys(
        chain: chain.bytes, keyringBlob: birth.keyringBlob, accessKey: .random(), expected: birth.userID)
    }
  }

  @Test func anAccountWithoutThisAppsTree_isNotTakenForAnEmptyOne() async throws {
    try await NetworkWorld.run { world in
      let words = try await world.device().users.createAccount().words
      let device = try world.device()
      let login = AccountLogin(
        database: device.connection, connection: device.users.connection, appTreeID: "com.example.another",
        now: { 1 })
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await login.run(try AccessKey(words: words))
      }
      #expect(error?.code == .accountStateMissing)
    }
  }

  // MARK: Deleting

  @Test func aDeletedUserLeavesNothing_andTheServerForgetsTheDevice() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let (user, words) = try await device.users.createAccount()
      let stays = try await device.users.createAccount().localUser
      try await device.users.delete(user)
      #expect(try await device.users.allLocalUserIDs() == [stays.uuid])
      await #expect(throws: ZDCError.self) { try await device.users.accessWords(for: user.uuid) }
      await #expect(throws: ZDCError.self) { try await device.users.delete(user) }
      let again = try world.device()
      let back = try await again.users.login(words: words)
      #expect(try await again.api(back).sessions().sessions.count == 1)
    }
  }

  /// - a user is deleted, and the next one is created
  /// => the new user has another row number, and nothing is stored under the deleted user's
  @Test func aRowNumberIsNotGivenAgain_andNothingIsLeftOfItsUser() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let user = try await device.users.createAccount().localUser
      let id = try await device.connection.asyncReadWrite { transaction in
        let id = try #require(try transaction.localUsers.all().first?.id)
        try transaction.setPushPause(.lettingUploadsEnd, localUser: id)
        try transaction.setLastSynced(ms: 1_000, localUser: id)
        return id
      }
      try await device.users.delete(user)
      _ = try await device.users.createAccount()
      let (ids, pause, synced) = try await device.connection.asyncRead { transaction in
        let ids = try transaction.localUsers.all().map(\.id)
        return (ids, try transaction.pushPause(localUser: id), try transaction.lastSynced(localUser: id))
      }
      #expect(ids == [id + 1] && pause == nil && synced == nil)
    }
  }

  @Test func withChangesInTheQueue_deletingNeedsForce() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let user = try await device.users.createAccount().localUser
      let zone = try await device.zones(of: user)[0]
      try await device.connection.asyncReadWrite { transaction in
        try transaction.database.execute(
          sql: """
            INSERT INTO zdc_operation
            (uuid, zone, kind, nodeUUID, nodeID, state, reason, attempts, notBeforeMs, priority, createdMs)
            VALUES ('u', ?, 4, 'n', zeroblob(16), 0, 0, 0, 0, 0, 0)
            """, arguments: [zone.id])
      }
      let error = await #expect(throws: ZDCError.self) { try await device.users.delete(user) }
      #expect(error?.code == .changesQueued)
      #expect(try await device.users.allLocalUserIDs() == [user.uuid])
      try await device.users.delete(user, force: true)
      #expect(try await device.users.allLocalUserIDs() == [])
    }
  }

  @Test func offline_aUserCanStillBeRemoved() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device()
      let user = try await device.users.createAccount().localUser
      device.transport.set(.init(before: { _ in throw TransportError(.offline) }))
      try await device.users.delete(user)
      #expect(try await device.users.allLocalUserIDs() == [])
    }
  }

  @Test func theDatabaseShowsNoSecret() async throws {
    try await NetworkWorld.run { world in
      let device = try world.device("a")
      let (user, words) = try await device.users.createAccount()
      let userID = try ZDCLocalUserManager.userID(user.uuid)
      let keys = try await device.users.keys(for: userID)
      try device.close()
      let secrets = [
        try AccessKey(words: words).exportBytes(), keys.signingKey.seed.exportBytes(),
        Array(words[0...2].joined(separator: " ").utf8),
      ]
      let folder = world.folder.appendingPathComponent("a")
      let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      #expect(!files.isEmpty)
      for file in files {
        let bytes = try Data(contentsOf: file)
        for secret in secrets { #expect(bytes.range(of: Data(secret)) == nil, "\(file.lastPathComponent)") }
      }
    }
  }
}
