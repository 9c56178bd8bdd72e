import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Every fault at every request of the wire API, with the requests of the route table. => A typed error at most, and
/// afterwards the same state as without the fault.
struct NetworkMatrixTests {
  enum Kind: String, Sendable, CaseIterable {
    case loseRequest, loseResponse, cutAtOnce, cutLater, slow, serverBusy, duplicate, delay

    func fault(_ clock: ManualClock) -> Fault {
      switch self {
      case .loseRequest: .loseRequest
      case .loseResponse: .loseResponse
      case .cutAtOnce: .cutResponse(afterBytes: 0)
      case .cutLater: .cutResponse(afterBytes: 40)
      case .slow: .slowResponse(bytesAtOnce: 100)
      case .serverBusy: .answer(status: 503, code: "shuttingDown")
      case .duplicate: .duplicate
      // Time passes while the request is in flight.
      case .delay: .before { clock.advance(by: .seconds(3_600)) }
      }
    }
  }

  @Test(arguments: WireRoutes.all) func everyRequest_disturbedInEveryWay(_ route: WireRoutes.Route) async throws {
    let clock = ManualClock()
    let server = try await TestServer.start(clock: clock)
    let network = NetworkExercise(server: server, clock: clock)
    let undisturbed = try await network.run(route, disturbed: nil)
    for kind in Kind.allCases {
      let disturbed = try await network.run(route, disturbed: kind.fault(clock))
      #expect(disturbed == undisturbed, "\(kind) at \(route)")
    }
    try await server.stop()
  }

  @Test func everyRouteOfTheTable_isExercised() {
    #expect(Set(NetworkExercise.jobs.keys) == Set(WireRoutes.all.map(\.description)))
  }
}

/// Two devices and a job for each route. The fault strikes the first request of that route, and the job is repeated
/// until it succeeds. The job returns what must be the same with and without the fault.
final class NetworkExercise: Sendable {
  private let words = Mutex<[String]>([])
  let server: TestServer
  let clock: ManualClock

  init(server: TestServer, clock: ManualClock) {
    self.server = server
    self.clock = clock
  }

  typealias Job = @Sendable (NetworkExercise, TestDevice) async throws -> String

  /// - Returns: The state that the job found at its end.
  func run(_ route: WireRoutes.Route, disturbed fault: Fault?) async throws -> String {
    let device = try await TestDevice("A", server: server, clock: clock)
    guard let job = Self.jobs[route.description] else { throw TestFailure("no job for \(route)") }
    if !Self.beginners.contains(route.description) {
      let made = try await device.createAccount()
      words.withLock { $0 = made }
    }
    if let fault { device.network.fail(fault, route.method, route.pattern) }
    let found = try await attempt { try await job(self, device) }
    #expect(device.network.hasStruck, "\(route) was never asked for")
    #expect(device.network.count(route.method, route.pattern) > 0)
    #expect(try await device.securityErrors() == [])
    try await device.close()
    return found
  }

  /// Retries like an app, after the pause that the server asked for.
  private func attempt(_ body: () async throws -> String) async throws -> String {
    for _ in 0..<5 {
      do { return try await body() } catch is TestFailure { throw TestFailure("the job is wrong") } catch {
        clock.advance(by: .seconds(600))
      }
    }
    return try await body()
  }

  /// Jobs that create the account themselves.
  static let beginners: Set<String> = [
    "GET \(Routes.info)", "POST \(Routes.accounts)", "POST \(Routes.login)", "GET \(Routes.chain)",
    "GET \(Routes.keyring)", "POST \(Routes.challenge)", "POST \(Routes.records)", "GET \(Routes.zoneCommits)",
  ]

  static let jobs: [String: Job] = [
    "GET \(Routes.health)": { try await $0.plain($1, Routes.health) },
    "GET \(Routes.ready)": { try await $0.plain($1, Routes.ready) },
    "GET \(Routes.metrics)": { try await $0.plain($1, Routes.metrics) },
    "GET \(Routes.info)": create, "POST \(Routes.accounts)": create,
    "POST \(Routes.challenge)": login, "POST \(Routes.login)": login, "GET \(Routes.chain)": login,
    "GET \(Routes.keyring)": login,
    "POST \(Routes.deviceLogin)": { try await $0.expired($1) }, "POST \(Routes.commits)": sync,
    "GET \(Routes.zoneCommits)": login, "POST \(Routes.records)": login, "GET \(Routes.zoneState)": state,
    "POST \(Routes.contents)": { try await $0.pulledByAnother($1) },
    "POST \(Routes.kept)": { _, device in
      guard let zone = try await device.api.zones(since: nil).zones.first?.zone else { throw TestFailure("no zone") }
      let unknown = LogNode(
        node: .random(), parent: .zero, record: .zero, putSeq: 0, keyGen: 1, parentKeyGen: 1)
      return "\(try await device.api.kept(zone, [unknown]).map(\.hasRecord))"
    },
    "GET \(Routes.content)": { try await $0.pulledByAnother($1) },
    "GET \(Routes.leafProof)": { try await $0.thumbnail($1) },
    "GET \(Routes.leafHashes)": { try await $0.exported($1) },
    "POST \(Routes.blobs)": film, "PUT \(Routes.blobPart)": film, "POST \(Routes.blobComplete)": film,
    "GET \(Routes.events)": { try await $0.live($1) },
    "GET \(Routes.zones)": { _, device in "\(try await device.api.zones(since: nil).zones.count)" },
    "GET \(Routes.audit)": { _, device in "\(try await device.api.audit().sections.count)" },
    "GET \(Routes.sessions)": { _, device in "\(try await device.api.sessions().sessions.isEmpty)" },
    "DELETE \(Routes.session)": { _, device in
      try await device.api.endSession()
      return "\(try await device.api.zones(since: nil).zones.count)"
    },
    "DELETE \(Routes.sessionOfDevice)": { _, device in
      // The device never existed; an error is an answer, too.
      do { try await device.api.endSessions(of: .random()) } catch let error as ServerError
        where error.code == .notFound
      {}
      return "\(try await device.api.zones(since: nil).zones.count)"
    },
    "PUT \(Routes.deviceLink)": link, "GET \(Routes.deviceLink)": link, "PUT \(Routes.deviceLinkAnswer)": link,
    "GET \(Routes.deviceLinkAnswer)": link, "PUT \(Routes.deviceLinkNonce)": link,
    "GET \(Routes.deviceLinkNonce)": link, "POST \(Routes.zonePages)": pages,
    "PUT \(Routes.membership)": membership, "DELETE \(Routes.membership)": membership,
    "POST \(Routes.messages)": mailbox, "GET \(Routes.inbox)": mailbox, "POST \(Routes.inboxEnvelopes)": mailbox,
    "DELETE \(Routes.inboxMessage)": mailbox, "PUT \(Routes.sender)": mailbox, "DELETE \(Routes.sender)": mailbox,
    "GET \(Routes.handles)": { _, device in "\(try await device.api.handles(beginning: "alice"))" },
    "POST \(Routes.links)": { _, device in try await device.appendClaim() },
    "POST \(Routes.chains)": { _, device in
      guard let user = UserID(text: try device.localUserID) else { throw TestFailure("no user id") }
      let answer = try await device.api.chains(after: [ChainPosition(user: user, count: 0)])
      let chain = try await device.api.chain(of: user)
      return "\(answer == chain)"
    },
    "PUT \(Routes.tree)": { _, device in try await device.createOtherTree() },
    "GET \(Routes.node)": { _, device in
      let zone = try await device.api.zones(since: nil).zones[0]
      return "\(try await device.api.zone(ofNode: zone.zoneRoot, in: zone.treeID).seq)"
    },
    "GET \(Routes.blobParts)": { _, device in
      let blob = try await device.openBlob()
      return "\(try await device.api.blobStatus(blob).isComplete)"
    },
    "DELETE \(Routes.blob)": { _, device in
      let blob = try await device.openBlob()
      do { try await device.api.abortBlob(blob) } catch let error as ServerError where error.code == .notFound {}
      return "gone"
    },
  ]

  private static let create: Job = { _, device in
    if device.localUserIDs.isEmpty { try await device.createAccount() }
    return try await made(device)
  }

  /// Uses a session that the server has ended; the first one was opened with the access key.
  private func expired(_ device: TestDevice) async throws -> String {
    _ = try await device.api.zones(since: nil)
    clock.advance(by: .seconds(25 * 3_600))
    return "\(try await device.api.zones(since: nil).zones.count)"
  }

  /// Logs in to another device's account.
  private static let login: Job = { exercise, device in
    let other = try await TestDevice("B", server: exercise.server, clock: exercise.clock)
    let words = try await other.createAccount()
    try await other.create("/there", "t")
    try await other.sync()
    try await other.close()
    for attempt in 0..<4 {
      do {
        try await device.login(words: words)
        break
      } catch  where attempt < 3 { exercise.clock.advance(by: .seconds(600)) }
    }
    try await device.sync()
    try await device.download()
    return try await device.tree()
  }

  private static let sync: Job = { _, device in
    try await device.relaunch()
    return try await made(device)
  }

  private static let film: Job = { _, device in
    if try await device.tree().isEmpty {
      try await device.create("/film", TestContent(data: EndToEndTests.bytes(200_000, seed: 1)))
    }
    try await drain(device)
    return try await device.tree()
  }

  private static func made(_ device: TestDevice) async throws -> String {
    if try await device.tree().isEmpty { try await device.create("/f", "one") }
    try await drain(device)
    return try await device.tree()
  }

  private static func drain(_ device: TestDevice) async throws {
    for _ in 0..<6 {
      try await device.sync()
      if try await device.queueCount() == 0 { return }
      device.clock.advance(by: .seconds(600))
    }
    throw TestFailure("the queue does not drain:\n\(try await device.queue())")
  }

  private func plain(_ device: TestDevice, _ path: String) async throws -> String {
    let response = try await device.network.send(TransportRequest(.get, path))
    guard response.status == 200 else { throw TransportError(.badAnswer) }
    return "\(try await response.body.collect(upTo: 1 << 20).isEmpty)"
  }

  private func pulledByAnother(_ device: TestDevice) async throws -> String {
    if try await device.tree().isEmpty { try await written(device) }
    try await device.sync()
    try await device.download()
    return try await device.tree()
  }

  /// Creates nodes on another device of the account.
  private func written(_ device: TestDevice) async throws {
    let other = try await TestDevice("B", server: server, clock: clock)
    try await other.login(words: words.withLock { $0 })
    try await other.pull()
    try await other.create("/folder", "x")
    try await other.create("/folder/small", "one")
    try await other.create(
      "/film",
      TestContent(
        data: EndToEndTests.bytes(2_300_000, seed: 1), metadata: Data("m".utf8),
        thumbnail: EndToEndTests.bytes(2_000, seed: 2)))
    try await other.sync()
    try await other.close()
  }

  private func thumbnail(_ device: TestDevice) async throws -> String {
    if try await device.tree().isEmpty { try await written(device) }
    try await device.sync()
    guard let manager = try device.zdc.downloadManager else { return "" }
    let meta = try await manager.downloadNodeMeta(try await device.node("/film"), components: [.thumbnail])
    return "\(meta.thumbnail?.count ?? 0)"
  }

  private func exported(_ device: TestDevice) async throws -> String {
    if try await device.tree().isEmpty { try await written(device) }
    try await device.sync()
    guard let manager = try device.zdc.downloadManager else { return "" }
    let url = device.folder.appendingPathComponent("film")
    _ = try await manager.downloadNodeData(try await device.node("/film"), toFile: url)
    return "\(try Data(contentsOf: url).count)"
  }

  private func live(_ device: TestDevice) async throws -> String {
    for try await event in try await device.api.events(since: nil) {
      if case .zones(let list) = event { return "\(list.zones.count)" }
    }
    throw TransportError(.cut)
  }
}
