import Foundation
import Synchronization
import Testing
import ZDCProtocol
import ZDCServerMemory

@testable import ZDCServer
@testable import ZDCServerSQLite

/// The nodes of an ended zone are removed in steps, between which the server serves other accounts.
@Suite(.timeLimit(.minutes(60))) struct ZoneEndStepTests {
  /// 1,500, or as many as `ZDC_BRANCH_NODES` says.
  private static let nodes = ProcessInfo.processInfo.environment["ZDC_BRANCH_NODES"].flatMap { Int($0) } ?? 1_500
  private static let limit = 250

  /// - A zone of many nodes ends; after each step that removes some of them, another account commits
  /// => each step removes as many as the others and works as much, however many are left
  @Test("S-9: a large zone ends in steps of the same size", arguments: StoreContractTests.stores)
  func aLargeZoneEndsInBoundedSteps(_ maker: StoreContractTests.Maker) async throws {
    try await StoreContractTests.withStore(maker) { (store: any MetadataStore) async throws in
      var world = try await StoreSplitTests.World(store, branch: Self.nodes)
      var other = try await StoreSplitTests.World(store, branch: 1)
      let child = try await world.split()
      try await world.apply(TestZone.body(try child.end()), now: 9)
      let all = try await Self.liveNodes(of: world.account.userID, store)
      var work: [Int] = []
      var isMore = true
      while isMore {
        let step = try await Self.step(store)
        isMore = step.isMore
        work.append(step.work)
        let removed = UInt64(min(work.count * Self.limit, Self.nodes))
        #expect(try await Self.liveNodes(of: world.account.userID, store) == all - removed)
        try await other.put([other.home.record(.random())])
      }
      #expect(work.count == (Self.nodes + Self.limit - 1) / Self.limit)
      let full = work.prefix(Self.nodes / Self.limit)
      let (least, most) = (full.min() ?? 0, full.max() ?? 0)
      #expect(most <= 3 * least, "\(least) to \(most) instructions of the database")
    }
  }

  private static func liveNodes(of user: UserID, _ store: any MetadataStore) async throws -> UInt64 {
    try await store.read { try $0.usage(of: user).liveNodes }
  }

  /// - Returns: whether nodes are left, and the number of instructions that SQLite runs for the step; 0 for other stores.
  private static func step(_ store: any MetadataStore) async throws -> (isMore: Bool, work: Int) {
    try await store.write([.upkeep]) { tx -> (isMore: Bool, work: Int) in
      guard let sqlite = tx as? SQLiteTransaction else {
        let isMore = try tx.removeClosedNodes(limit: Self.limit)
        return (isMore: isMore, work: 0)
      }
      let counted = try SQLiteWork.counted(sqlite.db) { try sqlite.removeClosedNodes(limit: Self.limit) }
      return (isMore: counted.0, work: counted.steps)
    }
  }

  /// A store that does something else after each write that removes old data, before the next one begins.
  private final class SteppedStore: MetadataStore {
    private struct State {
      var steps = 0
      var body: (@Sendable () async throws -> Void)?
    }

    private let store: any MetadataStore
    private let state = Mutex(State())

    init(_ store: any MetadataStore) { self.store = store }

    /// The number of times that the other thing was done.
    var steps: Int { state.withLock { $0.steps } }

    func afterEachStep(_ body: @escaping @Sendable () async throws -> Void) { state.withLock { $0.body = body } }

    func write<T: Sendable>(
      _ subjects: Set<WriteSubject>, _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
    ) async throws -> T {
      let value = try await store.write(subjects, body)
      if subjects == [.upkeep] { try await between() }
      return value
    }

    private func between() async throws {
      let body = state.withLock { state in
        if state.body != nil { state.steps += 1 }
        return state.body
      }
      try await body?()
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T {
      try await store.read(body)
    }

    func compact() async throws { try await store.compact() }
    func close() async throws { try await store.close() }
    var writeStatistics: WriteStatistics { store.writeStatistics }
  }

  private struct Client: ServerClient {
    let origin: String
  }

  /// - The server removes the 1,000 nodes of an ended zone; before each of its steps, another account logs in
  /// => it does so between all steps, as often as before and once more for each 250 nodes but the first
  @Test func otherAccountsAreServedBetweenTheSteps() async throws {
    let store = SteppedStore(MemoryStore())
    let server = try await RunningServer.start(
      metadata: store, blobs: MemoryBlobStore(), logger: LogCapture().logger)
    let result: Result<Void, any Error>
    do {
      result = .success(try await Self.expectSteps(of: server, store))
    } catch { result = .failure(error) }
    try await server.stop()
    try result.get()
  }

  private static func expectSteps(of server: RunningServer, _ store: SteppedStore) async throws {
    let client = Client(origin: server.url)
    let (account, token) = try await client.newAccount()
    let other = try await client.newAccount().account
    store.afterEachStep { _ = try await client.login(other) }
    // The server also collects by itself when it has started, at the same time as one of these.
    var idle = Int.max
    for _ in 0..<3 { idle = min(idle, try await steps(of: server, store)) }
    let zone = try await branch(of: account, client, token)
    let all = try await liveNodes(of: account.userID, store)
    _ = try await client.commit(TestZone.body(try zone.end()), token: token).expect(200)
    let steps = try await steps(of: server, store)
    #expect(idle > 0 && steps >= idle + 3, "\(idle) steps, then \(steps)")
    #expect(try await liveNodes(of: account.userID, store) == all - 1_000)
  }

  private static func steps(of server: RunningServer, _ store: SteppedStore) async throws -> Int {
    let before = store.steps
    try await server.collect()
    return store.steps - before
  }

  /// A branch of 1,000 nodes that has become a zone.
  private static func branch(of account: TestAccount, _ client: Client, _ token: [UInt8]) async throws -> TestZone {
    var home = account.home
    let top = home.record(.random())
    try await client.put([top], in: &home, token: token)
    let nodes = (0..<999).map { _ in home.record(.random(), parent: top.fields.node) }
    try await client.put(nodes, in: &home, token: token)
    return try await client.split(top.fields.node, of: &home, token: token)
  }
}
