import Testing
import ZDCMerge

/// The framework's loop, without the framework: a device that uploads on top of an old version merges first.
@Suite struct ConvergenceTests {
  private struct Server {
    var board: Board
    var version = 0
  }

  private struct Device {
    var board: Board
    var version = 0
    var pending: [ZDCChangeset] = []
    /// Whether pending changesets are replaced after a merge, or stay as they were queued.
    var replacesPending: Bool

    mutating func edit(_ body: (inout Board) -> Void) throws {
      body(&board)
      if let changeset = try board.changeset() { pending.append(ZDCChangeset(encoded: changeset.encoded)) }
    }

    /// - Returns: Whether anything happened.
    mutating func sync(_ server: inout Server) throws -> Bool {
      let isBehind = version != server.version
      if isBehind {
        let report = try board.mergeReporting(cloudVersion: server.board, pendingChangesets: pending)
        version = server.version
        if replacesPending { pending = report.remaining.map { [$0] } ?? [] }
      }
      guard !pending.isEmpty else { return isBehind }
      pending = []
      guard server.board != board else { return isBehind }
      server.board = board
      server.version += 1
      version = server.version
      return true
    }
  }

  @Test(arguments: [2, 3], Array(UInt64(1)...30))
  func devicesSettleAfterEditMergeEdit(count: Int, seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var server = Server(board: Board.random(&generator, edits: 30))
    var devices = (0..<count).map { Device(board: server.board, replacesPending: ($0 + Int(seed)) % 2 == 0) }
    for _ in 0..<40 {
      let index = Int.random(in: 0..<count, using: &generator)
      if Int.random(in: 0..<3, using: &generator) == 0 {
        _ = try devices[index].sync(&server)
      } else {
        try devices[index].edit { $0.editAtRandom(&generator) }
      }
    }
    var rounds = 0
    while try devices.indices.filter({ try devices[$0].sync(&server) }) != [] {
      rounds += 1
      try #require(rounds <= 2, "after two rounds, every device has every change")
    }
    for device in devices { #expect(device.board == server.board) }
  }

  @Test(arguments: [true, false], Array(UInt64(1)...20))
  func changesOfOneDeviceOnlyAreNeverLost(replacesPending: Bool, seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let start = Board(
      settings: ZDCDictionary(Dictionary(uniqueKeysWithValues: (0..<9).map { ("\($0)", 0) })),
      cards: ZDCOrderedDictionary((0..<9).map { ("\($0)", Card(title: "")) }))
    var server = Server(board: start)
    var devices = (0..<3).map { _ in Device(board: start, replacesPending: replacesPending) }
    var expected: [String: Int] = [:]
    for step in 1...60 {
      let owner = Int.random(in: 0..<3, using: &generator)
      // Each device has its own keys.
      let key = "\(owner * 3 + Int.random(in: 0..<3, using: &generator))"
      try devices[owner].edit {
        $0.settings[key] = step
        $0.cards[key]?.points = step
        $0.members.insert(step)
        $0.log.append(step)
      }
      expected[key] = step
      if Bool.random(using: &generator) { _ = try devices[owner].sync(&server) }
    }
    for _ in 0..<2 {
      for index in devices.indices { _ = try devices[index].sync(&server) }
    }
    for (key, step) in expected {
      #expect(server.board.settings[key] == step)
      #expect(server.board.cards[key]?.points == step)
    }
    #expect(server.board.members == ZDCSet(1...60))
    #expect(server.board.log.sorted() == Array(1...60))
    for device in devices { #expect(device.board == server.board) }
  }
}
