import Testing
import ZDCCrypto
import ZDCProtocol

@testable import ZDCAccounts
@testable import ZDCClientAPI
@testable import ZeroDarkCloud

/// A second app on an existing account. A login creates the app's own tree if it asks for it.
@Suite struct FurtherTreeTests {
  private static let otherTree = "com.example.another"

  /// Logs in as an app with another primary tree, on its own device.
  private func login(_ device: NetworkDevice, _ words: [String], createsTree: Bool) async throws -> LocalUserRow {
    let login = AccountLogin(
      database: device.connection, connection: device.users.connection, appTreeID: Self.otherTree, now: { 1 })
    return try await login.run(try AccessKey(words: words), createsTree: createsTree).row
  }

  /// Checks that the account's chain claims exactly the trunks that the server has.
  private func check(_ row: LocalUserRow, on device: NetworkDevice) async throws {
    let identity = try UserKeys(row).identity
    #expect(row.state == .ready && row.secrets.request.isEmpty)
    let api = try await device.users.serverAPI(for: row.userID)
    #expect(try await api.chain(of: row.userID) == row.chain)
    for trunk in Trunk.allCases {
      let tree = TreeID.derive(owner: row.userID, trunk: trunk, appTreeID: Self.otherTree)
      let page = try PageContents(try await api.commitPage(ZoneID(trunkOf: tree), after: nil, withRecords: true).body)
      try identity.checkGenesis(try #require(page.commits.first).commit, trunk: trunk, appTreeID: Self.otherTree)
    }
    let zones = try await device.connection.asyncRead { try $0.zones.zones(localUser: row.id) }
    #expect(zones.filter { $0.appTreeID == Self.otherTree }.map(\.trunk) == Trunk.allCases)
  }

  @Test("Section 4: a login that asks for it creates the app's tree; without asking nothing is made")
  func createsTheTree() async throws {
    try await NetworkWorld.run { world in
      let words = try await world.device().users.createAccount().words
      let device = try world.device()
      let refusal = await #expect(throws: ZDCSecurityError.self) {
        _ = try await login(device, words, createsTree: false)
      }
      #expect(refusal?.code == .accountStateMissing)
      #expect(device.transport.count("PUT /v1/trees") == 0)
      try await check(try await login(device, words, createsTree: true), on: device)
      // Another device of the same app finds the tree, whether or not it asks to create one, and creates nothing.
      for createsTree in [false, true] {
        let other = try world.device()
        try await check(try await login(other, words, createsTree: createsTree), on: other)
        #expect(other.transport.count("PUT /v1/trees") == 0)
      }
    }
  }

  /// The request or its answer is lost at each step. With "killed", the process also ends there.
  @Test(
    "Section 4: cut off at any step, the same call resumes with the same trunks",
    arguments: [Routes.tree, Routes.links], ["request", "answer", "request, killed", "answer, killed"])
  func resumes(route: String, lost: String) async throws {
    try await NetworkWorld.run { world in
      let words = try await world.device().users.createAccount().words
      let once = Once()
      let prefix = String(route.prefix { $0 != "{" })
      let hooks = HookedTransport.Hooks(
        before: { request in
          if lost.hasPrefix("request"), request.path.hasPrefix(prefix), once.take() { throw TransportError(.cut) }
        },
        after: { request, response in
          if lost.hasPrefix("answer"), request.path.hasPrefix(prefix), once.take() { throw TransportError(.cut) }
          return response
        })
      var device = try world.device("b", hooks: hooks)
      await #expect(throws: TransportError(.cut)) { _ = try await login(device, words, createsTree: true) }
      #expect(try await device.users.allLocalUsers() == [])
      let trunks = try await device.connection.asyncRead { try $0.localUsers.all().map(\.secrets.request) }
      if lost.hasSuffix("killed") {
        try device.close()
        device = try world.device("b")
      }
      let row = try await login(device, words, createsTree: true)
      try await check(row, on: device)
      // The claimed trunks are those that were stored before the first request.
      let stored = try PageContents(try #require(trunks.first)).commits.map(\.commit.hash)
      #expect(try UserKeys(row).identity.genesisCommits(appTreeID: Self.otherTree) == stored)
    }
  }

  @Test("Section 4: a device that stopped before the claim and is lost leaves trunks that another device claims")
  func adoptsTrunks() async throws {
    try await NetworkWorld.run { world in
      let words = try await world.device().users.createAccount().words
      let lost = try world.device(
        hooks: .init(before: { if $0.path.hasPrefix(Routes.links) { throw TransportError(.cut) } }))
      await #expect(throws: TransportError(.cut)) { _ = try await login(lost, words, createsTree: true) }
      let device = try world.device()
      try await check(try await login(device, words, createsTree: true), on: device)
    }
  }

  @Test("Section 4: two devices create the tree at the same time, and there is one")
  func twoDevices() async throws {
    try await NetworkWorld.run { world in
      let words = try await world.device().users.createAccount().words
      let devices = [try world.device(), try world.device()]
      let rows = try await withThrowingTaskGroup(of: (Int, LocalUserRow).self) { group in
        for (number, device) in devices.enumerated() {
          group.addTask { (number, try await login(device, words, createsTree: true)) }
        }
        return try await group.reduce(into: [Int: LocalUserRow]()) { $0[$1.0] = $1.1 }
      }
      for (number, row) in rows { try await check(row, on: devices[number]) }
    }
  }

  @Test("Section 4: trunks that the account did not sign are not claimed")
  func strangersTrunks() async throws {
    try await NetworkWorld.run { world in
      let words = try await world.device().users.createAccount().words
      let stranger = try world.device()
      let strangersWords = try await stranger.users.createAccount().words
      let strangers = try await login(stranger, strangersWords, createsTree: true)
      let api = try await stranger.users.serverAPI(for: strangers.userID)
      let home = TreeID.derive(owner: strangers.userID, trunk: .home, appTreeID: Self.otherTree)
      let page = try await api.commitPage(ZoneID(trunkOf: home), after: nil, withRecords: false)
      let device = try world.device()
      device.transport.set(
        .init(after: { request, response in
          if request.path.hasPrefix("/v1/trees/\(Self.otherTree)") {
            let body = #"{"code":"zoneExists","message":"m","retryable":false}"#
            return TransportResponse(
              status: 409, headers: response.headers, body: TransportBody(bytes: Array(body.utf8)))
          }
          guard request.path.contains("/commits") else { return response }
          let headers = [
            "content-type": Bundle.mediaType, WireHeaders.zoneHead: "\(page.head.seq):\(page.head.hash.text)",
          ]
          return TransportResponse(status: 200, headers: headers, body: TransportBody(bytes: page.body))
        }))
      let refusal = await #expect(throws: ZDCSecurityError.self) {
        _ = try await login(device, words, createsTree: true)
      }
      #expect(refusal?.code == .recordBindingMismatch)
      #expect(device.transport.count("POST \(Routes.links)") == 0)
    }
  }
}
