import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZDCTreesystem
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZDCTransfers
@testable import ZeroDarkCloud

/// The device pins its own identity chain and compares it again at each start. An answer that no honest server would
/// give stops the next push (PROTOCOL 3.1, 3.2, 3.4).
@Suite struct IdentityTests {
  /// A device with its engine and an account that has pushed once.
  private struct Setting {
    let world: NetworkWorld
    var device: NetworkDevice
    var sync: ZDCSyncManager
    let user: ZDCLocalUser
    let words: [String]

    static func make(_ world: NetworkWorld) async throws -> Setting {
      let device = try world.device("a")
      let (user, words) = try await device.users.createAccount()
      let setting = Setting(world: world, device: device, sync: try device.engine(), user: user, words: words)
      try await setting.change("/first")
      try await setting.sync.syncUntilIdle(localUserID: user.uuid)
      return setting
    }

    mutating func relaunch(_ hooks: HookedTransport.Hooks = .init()) throws {
      try device.close()
      device = try world.device("a", hooks: hooks)
      sync = try device.engine()
    }

    func change(_ path: String) async throws {
      try await device.connection.asyncReadWrite { [user] transaction in
        let path = try #require(ZDCTreesystemPath(path))
        try transaction.writableCloud(forLocalUserID: user.uuid, treeID: NetworkWorld.treeID)?
          .createNode(withPath: path)
      }
    }

    func row() async throws -> LocalUserRow {
      let userID = try ZDCLocalUserManager.userID(user.uuid)
      return try await device.connection.asyncRead { try #require(try $0.localUsers.user(userID)) }
    }

    func events() async throws -> [String] {
      try await device.connection.asyncRead {
        try String.fetchAll($0.database, sql: "SELECT code FROM zdc_security_event ORDER BY id")
      }
    }

    func queued() async throws -> Int {
      try await device.connection.asyncRead {
        try Int.fetchOne($0.database, sql: "SELECT COUNT(*) FROM zdc_operation") ?? 0
      }
    }

    /// Queues a change, and expects that the push fails with that error and sends only queries.
    func expectRefusal(_ code: ZDCSecurityError.Code) async throws {
      let chain = try await row().chain
      try await change("/second")
      for _ in 0..<2 {
        let error = await #expect(throws: ZDCSecurityError.self) {
          try await sync.syncUntilIdle(localUserID: user.uuid)
        }
        #expect(error?.code == code)
      }
      #expect(device.transport.count("POST /v1/commits") == 0)
      #expect(device.transport.count("POST /v1/account") == 0)
      #expect(try await events() == [code.rawValue])
      #expect(try await row().chain == chain)
      #expect(try await queued() == 2)
    }
  }

  private static func answering(
    _ path: String, _ change: @escaping @Sendable ([UInt8]) throws -> [UInt8]
  ) -> HookedTransport.Hooks {
    lying(about: path) { response in
      let bytes = try await response.body.collect(upTo: 1 << 22)
      return TransportResponse(
        status: 200, headers: response.headers, body: TransportBody(bytes: try change(bytes)))
    }
  }

  private static func missing(_ path: String) -> HookedTransport.Hooks {
    lying(about: path) { _ in
      let body = #"{"code":"notFound","message":"m","retryable":false}"#
      return TransportResponse(
        status: 404, headers: ["content-type": "application/json"], body: TransportBody(bytes: Array(body.utf8)))
    }
  }

  /// Removes the end of the chain from the list of zones, so that the client reads the chain.
  private static func lying(
    about path: String, _ lie: @escaping @Sendable (TransportResponse) async throws -> TransportResponse
  ) -> HookedTransport.Hooks {
    HookedTransport.Hooks(after: { request, response in
      if request.path.hasSuffix(path) { return try await lie(response) }
      guard request.path.hasSuffix(Routes.zones) else { return response }
      var list = try JSONDecoder().decode(ZoneList.self, from: Data(try await response.body.collect(upTo: 1 << 22)))
      list.chain = nil
      let body = Array(try JSONEncoder().encode(list))
      return TransportResponse(status: 200, headers: response.headers, body: TransportBody(bytes: body))
    })
  }

  // MARK: Longer chains

  @Test func anUnchangedChain_needsOneRequest() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      try setting.relaunch()
      for _ in 0..<2 { try await setting.sync.syncUntilIdle(localUserID: setting.user.uuid) }
      #expect(setting.device.transport.count(Routes.zones) == 2)
      #expect(setting.device.transport.count("/chain") == 0)
      #expect(setting.device.transport.count(Routes.keyring) == 0)
    }
  }

  /// - another device rotates the keys
  /// => this one reads the new keyring and signs with the new key
  @Test func rotatedKeys_areTakenOver() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      var change = try await IdentityChange(setting.row())
      try await change.rotateKeys(setting.device.api(setting.user))
      try setting.relaunch()
      try await setting.change("/second")
      try await setting.sync.syncUntilIdle(localUserID: setting.user.uuid)
      #expect(try await setting.queued() == 0)
      #expect(try await setting.events() == [])
      #expect(try await UserKeys(setting.row()).signGen == 2)
      // The new keys persist.
      try setting.relaunch()
      try await setting.change("/third")
      try await setting.sync.syncUntilIdle(localUserID: setting.user.uuid)
      #expect(try await setting.queued() == 0)
      #expect(setting.device.transport.count(Routes.keyring) == 0)
    }
  }

  /// - another device changes the access key
  /// => this one is notified once, and continues with its session and its keys
  @Test func changedAccessKey_isReported_andTheDeviceContinues() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      var change = try await IdentityChange(setting.row())
      let words = try await change.rotateRoot(setting.device.api(setting.user))
      for path in ["/second", "/third"] {
        try setting.relaunch()
        try await setting.change(path)
        try await setting.sync.syncUntilIdle(localUserID: setting.user.uuid)
        #expect(try await setting.queued() == 0)
      }
      #expect(try await setting.events() == ["accessKeyChanged"])
      // The old words no longer work; the new ones do.
      await #expect(throws: ZDCError.self) { try await setting.device.users.login(words: setting.words) }
      _ = try await setting.device.users.login(words: words)
      #expect(try await setting.device.users.accessWords(for: setting.user.uuid) == words)
    }
  }

  /// - another device changes the access key, and then the keys, which this one cannot open
  /// => this device does not push with a key that no longer belongs to the account
  @Test func changedAccessKeyAndKeys_stopThePush() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      let api = try await setting.device.api(setting.user)
      var change = try await IdentityChange(setting.row())
      _ = try await change.rotateRoot(api)
      try await change.rotateKeys(api)
      try setting.relaunch()
      try await setting.change("/second")
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await setting.sync.syncUntilIdle(localUserID: setting.user.uuid)
      }
      #expect(error?.code == .accessKeyChanged)
      #expect(setting.device.transport.count("POST /v1/commits") == 0)
      #expect(try await setting.queued() == 2)
    }
  }

  // MARK: Dishonest servers

  @Test func shorterChain_isARollback() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      let old = try await setting.row().chain
      try await IdentityChange(setting.row()).claim(setting.device.api(setting.user))
      _ = try await setting.device.users.login(words: setting.words)
      try setting.relaunch(Self.answering("/chain") { _ in old })
      try await setting.expectRefusal(.identityChainRollback)
      // A login does not bypass the refusal.
      let error = await #expect(throws: ZDCSecurityError.self) {
        try await setting.device.users.login(words: setting.words)
      }
      #expect(error?.code == .identityChainRollback)
      // The honest server is trusted again.
      setting.device.transport.set(.init())
      try await setting.sync.syncUntilIdle(localUserID: setting.user.uuid)
      #expect(try await setting.queued() == 0)
    }
  }

  @Test func otherChainOfTheSameUser_isInvalid() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      let other = try await IdentityChange(setting.row()).claimed()
      try await IdentityChange(setting.row()).claim(setting.device.api(setting.user))
      _ = try await setting.device.users.login(words: setting.words)
      try setting.relaunch(Self.answering("/chain") { _ in other })
      try await setting.expectRefusal(.identityChainInvalid)
    }
  }

  @Test func alteredContinuation_isInvalid() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      try await IdentityChange(setting.row()).claim(setting.device.api(setting.user))
      try setting.relaunch(
        Self.answering("/chain") { bytes in
          var bytes = bytes
          bytes[bytes.count - 1] ^= 1
          return bytes
        })
      try await setting.expectRefusal(.identityChainInvalid)
    }
  }

  @Test(arguments: ["denied", "empty"]) func missingChain_isNoNewAccount(how: String) async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      try setting.relaunch(how == "empty" ? Self.answering("/chain") { _ in [] } : Self.missing("/chain"))
      try await setting.expectRefusal(.accountStateMissing)
    }
  }

  @Test func missingKeyring_isNoNewAccount() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      var change = try await IdentityChange(setting.row())
      try await change.rotateKeys(setting.device.api(setting.user))
      try setting.relaunch(Self.missing(Routes.keyring))
      try await setting.expectRefusal(.accountStateMissing)
    }
  }

  @Test(arguments: [("old", ZDCSecurityError.Code.keyringRollback), ("altered", .keyringAuthFailed)])
  func keyringThatDoesNotFit_isRefused(what: String, code: ZDCSecurityError.Code) async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      let old = try await setting.row().secrets.keyringBlob
      var change = try await IdentityChange(setting.row())
      try await change.rotateKeys(setting.device.api(setting.user))
      try setting.relaunch(
        Self.answering(Routes.keyring) { bytes in
          var altered = bytes
          altered[60] ^= 1
          return what == "old" ? old : altered
        })
      try await setting.expectRefusal(code)
    }
  }

  /// - a link is appended between the two requests
  /// => this does not count as an attack
  @Test func linkBetweenTheTwoRequests_isReadAgain() async throws {
    try await NetworkWorld.run { world in
      var setting = try await Setting.make(world)
      let before = try await setting.row()
      let api = try await setting.device.api(setting.user)
      var change = try IdentityChange(before)
      try await change.rotateKeys(api)
      let once = Once()
      let next = change
      try setting.relaunch(
        HookedTransport.Hooks(before: { request in
          guard request.path == Routes.keyring, once.take() else { return }
          var next = next
          try await next.rotateKeys(api)
        }))
      try await setting.change("/second")
      try await setting.sync.syncUntilIdle(localUserID: setting.user.uuid)
      #expect(try await setting.events() == [])
      #expect(try await UserKeys(setting.row()).signGen == 3)
    }
  }

  @Test func weakKeyInALink_isRefused() async throws {
    let birth = try NewAccount(accessKey: .random(), appTreeID: NetworkWorld.treeID, timeMs: 1)
    var fields = IdentityLink.Fields(
      kind: .genesis, timeMs: 1, rootPub: birth.genesis.rootPub, signPub: [1] + [UInt8](repeating: 0, count: 31),
      encPub: birth.genesis.encPub)
    fields.keyringHash = birth.genesis.keyringHash
    let link = try IdentityLink(signing: fields, root: birth.accessKey.rootKey, sign: birth.signingKey)
    var chain = Bundle.Writer()
    chain.append(link: link.bytes)
    #expect(throws: ZDCSecurityError.self) {
      try UserKeys(
        chain: chain.bytes, keyringBlob: birth.keyringBlob, accessKey: birth.accessKey, expected: link.userID)
    }
    do { _ = try IdentityReplay.verify([link]) } catch { #expect(error.code == .weakPublicKey) }
  }
}

/// The changes that another device of the account may make to its identity.
private struct IdentityChange {
  private var accessKey: AccessKey
  private var keyring: Keyring
  private var links: [IdentityLink]

  init(_ row: LocalUserRow) throws {
    accessKey = row.secrets.accessKey
    links = try IdentityChain.links(row.chain, of: row.userID)
    keyring = try Keyring.open(
      row.secrets.keyringBlob, key: accessKey.keyringKey, identity: try IdentityReplay.verify(links))
  }

  private var last: IdentityLink { links[links.count - 1] }

  private func fields(_ kind: IdentityLink.Kind) -> IdentityLink.Fields {
    var fields = IdentityLink.Fields(
      kind: kind, timeMs: 1, rootPub: last.rootPub, signPub: last.signPub, encPub: last.encPub)
    fields.seq = last.seq + 1
    fields.prev = last.hash
    fields.userID = links[0].userID
    (fields.signGen, fields.encGen) = (last.signGen, last.encGen)
    (fields.keyringVersion, fields.keyringHash) = (last.keyringVersion, last.keyringHash)
    return fields
  }

  private func signer() throws -> SigningKey { try #require(keyring.signingKey(gen: last.signGen)) }

  mutating func rotateKeys(_ api: ServerAPI) async throws {
    var fields = fields(.rotateKeys)
    let key = SigningKey.random()
    fields.signGen += 1
    fields.signPub = key.publicKey
    keyring.version += 1
    keyring.entries.removeAll { $0.kind == .sign }
    keyring.entries.insert(Keyring.Entry(signing: key, gen: fields.signGen, status: .current, createdMs: 1), at: 0)
    let blob = try keyring.seal(accessKey.keyringKey)
    (fields.keyringVersion, fields.keyringHash) = (keyring.version, Keyring.hash(blob))
    let link = try IdentityLink(signing: fields, root: accessKey.rootKey, sign: key)
    try await api.appendLink(AppendLinkRequest(link: WireBytes(link.bytes), keyring: WireBytes(blob)))
    links.append(link)
  }

  mutating func rotateRoot(_ api: ServerAPI) async throws -> [String] {
    let new = AccessKey.random()
    var fields = fields(.rotateRoot)
    fields.rootPub = new.rootKey.publicKey
    keyring.version += 1
    let blob = try keyring.seal(new.keyringKey)
    (fields.keyringVersion, fields.keyringHash) = (keyring.version, Keyring.hash(blob))
    let link = try IdentityLink(signing: fields, root: accessKey.rootKey, newRoot: new.rootKey, sign: try signer())
    try await api.appendLink(
      AppendLinkRequest(
        link: WireBytes(link.bytes), keyring: WireBytes(blob), lookupID: new.lookupID,
        loginKey: WireBytes(new.loginKey.publicKey)))
    links.append(link)
    accessKey = new
    return new.words
  }

  private func claimLink() throws -> IdentityLink {
    var fields = fields(.claims)
    let trunks = try Trunk.allCases.map { _ in try #require(CommitHash((0..<32).map { _ in UInt8.random(in: 0...255) }))
    }
    fields.claims = [.tree(appTreeID: "com.example.other", genesisCommits: trunks)]
    return try IdentityLink(signing: fields, root: accessKey.rootKey, sign: try signer())
  }

  func claim(_ api: ServerAPI) async throws {
    try await api.appendLink(AppendLinkRequest(link: WireBytes(try claimLink().bytes)))
  }

  /// Returns a chain that continues with a claim that the server never received.
  func claimed() throws -> [UInt8] {
    var chain = Bundle.Writer()
    for link in links { chain.append(link: link.bytes) }
    chain.append(link: try claimLink().bytes)
    return chain.bytes
  }
}

extension NetworkDevice {
  /// Returns an engine on this device's database, which tests run step by step.
  func engine() throws -> ZDCSyncManager {
    let url = try #require(URL(string: users.connection.origin))
    return ZDCSyncManager(
      database: database, users: users, config: ZDCConfig(primaryTreeID: NetworkWorld.treeID, serverURL: url),
      delegate: DelegateBox(NoOpDelegate()), progress: ZDCProgressManager())
  }
}
