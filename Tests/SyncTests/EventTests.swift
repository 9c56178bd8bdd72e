import GRDB
import Synchronization
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Devices whose engines run: changes arrive through the event stream.
@Suite(.timeLimit(.minutes(20))) struct EventTests {
  /// The event carries the commit: B sends no request.
  @Test func changeOnA_appearsOnB_withoutARequest() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.sync()
      try await b.whileRunning {
        b.network.resetCounts()
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
        try await a.edit("/f", "2")
        try await a.sync()
        await b.recorder.wait(for: "modified data /f")
        #expect(b.network.counts() == "")
      }
    }
  }

  /// - a commit changes a folder and a node in it, and adds another
  /// => one transaction, and no request; a parent comes before its children
  @Test func aFewChangesOnA_takeOneTransactionOnB() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/list", "1")
      try await a.create("/list/x", "1")
      try await a.sync()
      try await b.whileRunning {
        await b.recorder.wait(for: "new /list/x")
        let commits = NodeCommits()
        try await b.write { transaction, _ in transaction.database.add(transactionObserver: commits) }
        b.network.resetCounts()
        try await a.edit("/list/x", "2")
        try await a.edit("/list", "2")
        try await a.create("/list/y", "1")
        #expect(try await a.push().commits == 1)
        for line in ["modified data /list", "modified data /list/x", "new /list/y"] { await b.recorder.wait(for: line) }
        try await b.write { _, _ in }  // after the transaction that has called the delegate
        #expect(commits.count == 1)
        #expect(b.network.counts() == "")
      }
    }
  }

  @Test func changeOfTheApp_isPushedAutomatically() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.whileRunning {
        try await b.whileRunning {
          try await a.create("/f", "1")
          await a.recorder.wait(for: "pushed /f")
          await b.recorder.wait(for: "new /f")
          try await b.rename("/f", to: "g")
          await a.recorder.wait(for: "moved /f -> /g")
          try await b.waitUntilQueueIsEmpty()
        }
      }
    }
  }

  /// - the server restarts, which ends the stream
  /// => the device connects again and gets what changed in the meantime
  @Test func streamThatEnds_isOpenedAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.sync()
      try await b.whileRunning {
        try await world.server.restart()
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
        await b.recorder.wait(for: "reconnected")
      }
    }
  }

  @Test func firstConnection_isNoReconnection() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.whileRunning {}
      #expect(a.recorder.lines == [])
    }
  }

  /// - the stream breaks off
  /// => one request opens it again: the first event names the end of the account's own identity chain, which is the
  /// pinned end
  @Test func streamThatIsCut_costsOneRequest() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.sync()
      try await b.sync()
      b.network.fail(.cutResponse(afterBytes: 2_000), "GET", "/v1/events")
      b.network.resetCounts()
      try await b.whileRunning {
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
        try await a.edit("/f", "2")
        try await a.sync()
        await b.recorder.wait(for: "modified data /f")
      }
      #expect(b.network.count("GET", Routes.chain) == 0)
      #expect(b.network.count("GET", "/v1/events") == 2)
    }
  }

  /// - another device has rotated the account's keys while the stream was away
  /// => the first event names another end of the chain, which the device reads, verifies and follows
  @Test func chainThatHasGoneOn_isReadAtTheReconnect() async throws {
    try await TestWorld.run { world in
      let b = try await world.device("B")
      try await b.create("/f", "1")
      try await b.sync()
      let user = try #require(UserID(text: try b.localUserID))
      let rogue = try await RogueWriter(words: try #require(world.words()), user: user, server: world.server)
      try await b.whileRunning {
        b.network.resetCounts()
        try await Self.rotateKeys(rogue, user)
        try await world.server.restart()
        await b.recorder.wait(for: "reconnected")
        #expect(b.network.count("GET", Routes.chain) == 1)
        // Under the new generation, which the server now requires.
        try await b.create("/g", "2")
        await b.recorder.wait(for: "pushed /g")
        try await b.waitUntilQueueIsEmpty()
      }
    }
  }

  static func rotateKeys(_ rogue: RogueWriter, _ user: UserID) async throws {
    let last = try await rogue.chain()[0]
    let signing = SigningKey.random()
    let keyring = try rogue.keyring(version: 2, next: signing).seal(rogue.keys.accessKey.keyringKey)
    var fields = IdentityLink.Fields(
      kind: .rotateKeys, timeMs: 1, rootPub: last.rootPub, signPub: signing.publicKey, encPub: last.encPub)
    (fields.seq, fields.prev, fields.userID, fields.signGen) = (1, last.hash, user, 2)
    (fields.keyringVersion, fields.keyringHash) = (2, Keyring.hash(keyring))
    let link = try IdentityLink(signing: fields, root: rogue.keys.accessKey.rootKey, sign: signing)
    try await rogue.append(link, keyring: keyring)
  }

  @Test func streamThatIsCut_isOpenedAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.sync()
      b.network.fail(.cutResponse(afterBytes: 700), "GET", "/v1/events")
      try await b.whileRunning {
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
        #expect(b.network.count("GET", "/v1/events") == 2)
      }
    }
  }

  @Test func changesWhileAway_arriveAtTheNextStart() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.sync()
      try await b.whileRunning {}
      try await a.create("/f", "1")
      try await a.sync()
      try await b.relaunch()
      try await b.whileRunning { await b.recorder.wait(for: "new /f") }
    }
  }
}

extension TestDevice {
  /// Waits until the queue is empty, before an engine is stopped: the app is notified inside the transaction, which
  /// then still has to commit.
  func waitUntilQueueIsEmpty() async throws {
    while try await queueCount() > 0 { await Task.yield() }
  }
}

/// Counts the commits that change nodes, also those that only the verified log has.
private final class NodeCommits: TransactionObserver, Sendable {
  private let state = Mutex((count: 0, isNode: false))

  var count: Int { state.withLock { $0.count } }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool {
    ["zdc_node", "zdc_leaf"].contains(eventKind.tableName)
  }

  func databaseDidChange(with event: DatabaseEvent) { state.withLock { $0.isNode = true } }

  func databaseDidCommit(_ db: Database) {
    state.withLock { state in
      if state.isNode { state.count += 1 }
      state.isNode = false
    }
  }

  func databaseDidRollback(_ db: Database) { state.withLock { $0.isNode = false } }
}
