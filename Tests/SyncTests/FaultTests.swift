import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The network fails in every way at every request. => The device reports the failure, loses nothing, duplicates
/// nothing, and continues when the network is back.
struct FaultTests {
  // MARK: Lost answers

  /// - the commit that creates /f arrives, but its answer does not
  /// => the same bytes are sent again: one node, no "f 2", no conflict
  @Test func lostResponse_neverMakesASecondNode() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: TransportError.self) { try await a.sync() }
      try await world.settle(a, b)
      #expect(try await b.tree() == "/f  v1  \"1\"")
      #expect(a.recorder.lines == ["data /f", "pushed /f"])
    }
  }

  @Test func lostResponse_thenRelaunch_thenPull_isRecognisedAsOwn() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: TransportError.self) { try await a.push() }
      try await a.relaunch()
      a.network.resetCounts()
      try await a.pull()
      #expect(a.recorder.lines == ["data /f", "pushed /f"])
      #expect(try await a.tree() == "/f  v1  \"1\"")
      #expect(a.network.count("POST", "/v1/commits") == 0)
    }
  }

  /// - A's edit arrives, but its answer is lost; B edits on top of it
  /// => A has no conflict with itself, and sees B's edit
  @Test func lostResponse_thenAnotherDevicesEdit_isNoConflict() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "0")
      try await world.settle(a, b)
      try await a.edit("/f", "A")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: TransportError.self) { try await a.push() }
      try await world.settle(b)
      try await b.edit("/f", "B")
      try await b.sync()
      _ = a.recorder.take()
      try await a.push()
      try await world.settle(a)
      #expect(a.recorder.take() == ["pushed /f", "modified data /f"])
      #expect(try await a.tree() == "/f  v3  \"B\"")
    }
  }

  @Test func lostResponse_duringFurtherEdits_keepsBothChanges() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: TransportError.self) { try await a.push() }
      try await a.rename("/f", to: "g")
      try await a.edit("/g", "2")
      try await a.create("/g/child", "c")
      try await world.settle(a, b)
      #expect(try await b.tree() == "/g  v2  \"2\"\n/g/child  v1  \"c\"")
    }
  }

  /// - A's commit was first, and the refusal of B's got lost; B pulls, then retries the stored request
  /// => the server refuses it and has nothing new to show, and B plans again
  @Test func lostRefusal_isPlannedAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await a.create("/a")
      try await a.sync()
      try await b.create("/b")
      b.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: TransportError.self) { try await b.push() }
      try await world.settle(b, a)
      let tree = try await a.tree()
      #expect(tree == "/a  v1\n/b  v1")
    }
  }

  @Test func lostAnswer_toTheRegistration_isOneAccount() async throws {
    try await TestWorld.run { world in
      let a = try await TestDevice("A", server: world.server, clock: world.clock)
      a.network.fail(.loseResponse, "POST", "/v1/accounts")
      await #expect(throws: TransportError.self) { try await a.createAccount() }
      try await a.relaunch()
      try await a.createAccount()
      try await a.create("/f")
      try await a.sync()
      #expect(try world.server.dump() == "account 1: 1 devices\n  home: seq 1, 1 nodes\n    n1 v1, content 136")
      try await a.close()
    }
  }

  // MARK: Every fault at every request

  enum Kind: String, Sendable, CaseIterable {
    case loseRequest, loseResponse, cutAtOnce, cutLater, serverBusy, serverError, duplicate, corruptFirst, corruptLast
    case corruptRequest

    var fault: Fault {
      switch self {
      case .loseRequest: .loseRequest
      case .loseResponse: .loseResponse
      case .cutAtOnce: .cutResponse(afterBytes: 0)
      case .cutLater: .cutResponse(afterBytes: 40)
      case .serverBusy: .answer(status: 503, code: "shuttingDown")
      case .serverError: .answer(status: 500, code: "internalError")
      case .duplicate: .duplicate
      case .corruptFirst: .corruptResponse(byteAt: 3)
      case .corruptLast: .corruptResponse(byteAt: -3)
      case .corruptRequest: .corruptRequest(byteAt: -3)
      }
    }

    /// Looks like a server that lies, so it may end in a security error; the other faults must not.
    var isCorruption: Bool { [.corruptFirst, .corruptLast, .corruptRequest].contains(self) }
  }

  /// The main job of a device: launch, pull, change, push small and large content, and pull on the other device.
  @Test(arguments: Kind.allCases.filter { !$0.isCorruption })
  func anyFault_atAnyRequest_losesAndDoublesNothing(kind: Kind) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      var number = 1
      while true {
        let folder = "/\(kind.rawValue)\(number)"
        let hasStruck = try await Self.job(a, b, folder, kind.fault, at: number)
        let tree = try await b.tree(versions: false).split(separator: "\n").filter { $0.hasPrefix(folder) }
        #expect(
          tree == [
            "\(folder)", "\(folder)/film  (70000 bytes)", "\(folder)/g  \"two\"", "\(folder)/kept  \"1\"",
          ], "\(kind) at request \(number)")
        if !hasStruck { break }
        number += 1
      }
      // The job sends more than this number of requests; fewer would mean that the faults did not reach it.
      #expect(number > 8)
    }
  }

  /// - Returns: Whether the fault was triggered.
  private static func job(
    _ a: TestDevice, _ b: TestDevice, _ folder: String, _ fault: Fault, at number: Int
  ) async throws -> Bool {
    try await a.relaunch()
    a.network.fail(fault, occurrence: number)
    try await a.create(folder)
    try await a.create("\(folder)/f", "one")
    try await a.create("\(folder)/kept", "1")
    try await a.create("\(folder)/gone", "0")
    try await a.create("\(folder)/film", TestContent(data: EndToEndTests.bytes(70_000, seed: 1)))
    try await retry(a)
    try await a.rename("\(folder)/f", to: "g")
    try await a.edit("\(folder)/g", "two")
    try await a.delete("\(folder)/gone")
    try await retry(a)
    let hasStruck = a.network.hasStruck
    a.network.restoreNetwork()
    try await b.sync()
    try await b.download()
    return hasStruck
  }

  /// Retries like an app's engine, after the pause that the server asked for.
  private static func retry(_ device: TestDevice) async throws {
    for attempt in 0..<5 {
      do {
        try await device.sync()
        if try await device.queueCount() == 0 { return }
      } catch  where attempt < 4 {}
      device.clock.advance(by: .seconds(120))
    }
    throw TestFailure("the queue does not drain:\n\(try await device.queue())")
  }

  /// A bit flipped in transit, anywhere: never other content, never another tree.
  @Test(arguments: Kind.allCases.filter(\.isCorruption))
  func turnedBit_atAnyRequest_neverChangesWhatIsThere(kind: Kind) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/d")
      try await a.create("/d/f", "one")
      try await a.sync()
      let whole = try await a.tree(versions: false)
      var number = 1
      while true {
        let b = try await TestDevice("B", server: world.server, clock: world.clock)
        b.network.fail(kind.fault, occurrence: number)
        let tree = try await Self.tryEverything(b, words: world.words() ?? [])
        let hasStruck = b.network.hasStruck
        // The device shows some of it or all of it, and what it shows is right.
        let possible = ["", "/d  ?\n/d/f  ?", "/d\n/d/f  ?", "/d  ?\n/d/f  \"one\"", whole]
        #expect(possible.contains(tree), "\(kind) at request \(number) shows \(tree)")
        try await b.close()
        if !hasStruck { break }
        number += 1
      }
      #expect(number > 8)
    }
  }

  private static func tryEverything(_ device: TestDevice, words: [String]) async throws -> String {
    do {
      try await device.login(words: words)
      try await device.sync()
      try await device.download()
    } catch let error where !(error is TestFailure) {
      guard !device.localUserIDs.isEmpty else { return "" }
    }
    return try await device.tree(versions: false)
  }

  // MARK: Time

  @Test func slowRequest_isWaitedFor() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      a.network.fail(.delay(.seconds(30)), "POST", "/v1/commits")
      async let synced = a.sync()
      await world.clock.waitForSleepers()
      #expect(try await a.queue() == "create /f inFlight\nputData /f inFlight")
      world.clock.advance(by: .seconds(30))
      _ = try await synced
      #expect(try await a.tree() == "/f  v1  \"1\"")
    }
  }

  @Test func restartedServer_isFoundAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await world.server.stop()
      await #expect(throws: TransportError.self) { try await a.sync() }
      try await world.server.restart()
      try await world.settle(a, b)
      #expect(try await b.tree() == "/f  v1  \"1\"")
    }
  }

  // MARK: Contention

  /// Two devices write alternately to one zone, and neither ever pulls first. Each commit is refused once and planned
  /// again.
  @Test func twoDevicesWritingAlternately_bothProgress() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.pull()
      try await a.pull()
      for round in 0..<10 {
        try await a.create("/a\(round)", "a")
        try await b.create("/b\(round)", "b")
        for device in [a, b] {
          try await device.push()
          try await device.push()
          #expect(try await device.queueCount() == 0)
        }
      }
      try await world.settle(a, b)
      #expect(try await a.tree() == (try await b.tree()))
      #expect(try await a.tree().split(separator: "\n").count == 20)
      #expect(try world.server.nodeCount() == 20)
    }
  }

  /// - another device's commit arrives right before each of this device's commits, three times in a row
  /// => the fourth attempt succeeds: from the third loss on, the other devices wait for it
  @Test func overtakenAgainAndAgain_getsThrough() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.pull()
      for number in 1...3 {
        a.network.fail(
          .before {
            try await b.create("/b\(number)")
            try await b.sync()
          }, "POST", "/v1/commits", occurrence: number)
      }
      try await a.create("/a", "mine")
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      #expect(a.recorder.lines.filter { $0 == "data /a" }.count == 1)
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == "/a  \"mine\"\n/b1\n/b2\n/b3")
    }
  }
}
