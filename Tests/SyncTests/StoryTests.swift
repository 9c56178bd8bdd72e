import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Delegate, event stream and status stream report the same events.
@Suite(.timeLimit(.minutes(20))) struct StoryTests {
  private struct AppError: Error {}

  /// Returns the delegate's line for the event. A deleted dirty node has no path, because the event does not have it.
  private static func line(_ event: ZDCNodeEvent) -> String {
    switch event {
    case .didPushNodeData(_, let path): "pushed \(path.relativePath())"
    case .didDiscoverNewNode(_, let path): "new \(path.relativePath())"
    case .didDiscoverModifiedNode(_, let change, let path): "modified \(change) \(path.relativePath())"
    case .didDiscoverMovedNode(_, let old, let new): "moved \(old.relativePath()) -> \(new.relativePath())"
    case .didDiscoverDeletedNode(_, let path, _): "deleted \(path.relativePath())"
    case .didDiscoverDeletedDirtyNode: "deletedDirty"
    case .didDiscoverConflict(let conflict, _, let path): "conflict \(conflict) \(path.relativePath())"
    case .didReconnectToInternet: "reconnected"
    case .missed(let count): "missed \(count)"
    }
  }

  /// Returns the delegate's lines, without the requests for content.
  private static func told(_ device: TestDevice) -> [String] {
    device.recorder.lines.filter { !$0.hasPrefix("data ") }
      .map { $0.hasPrefix("deletedDirty") ? "deletedDirty" : $0 }
  }

  /// Everything that the device's streams deliver until its framework closes.
  private struct Listening {
    var events: Task<[String], Never>
    var status: Task<[ZDCSyncStatus], Never>

    init(_ device: TestDevice) throws {
      let (nodes, updates) = (try device.syncManager.nodeEvents, try device.syncManager.statusUpdates)
      events = Task {
        var lines: [String] = []
        for await event in nodes { lines.append(StoryTests.line(event)) }
        return lines
      }
      status = Task {
        var seen: [ZDCSyncStatus] = []
        for await update in updates { seen.append(update) }
        return seen
      }
    }
  }

  @Test(arguments: 0..<6)
  func randomWork_isReportedConsistently(seed: Int) async throws {
    try await TestWorld.run { world in
      let devices = [try await world.device("A"), try await world.device("B")]
      let listening = try devices.map { try Listening($0) }
      for device in devices {
        device.recorder.dataConflictPolicy = .mergeLines
        try await device.sync()
      }
      var work = RandomWork(seed: UInt64(seed))
      for _ in 0..<40 { try await work.step(devices) }
      try await world.settle(devices[0], devices[1])
      // The app must decide about changes to nodes that the other device has deleted: it keeps them.
      for device in devices where try await device.queueCount() > 0 { try await device.reviveAll() }
      try await world.settle(devices[0], devices[1])
      for (device, heard) in zip(devices, listening) {
        try await device.relaunch()
        let told = Self.told(device)
        #expect(told.count > 5)
        #expect(await heard.events.value == told)
        try Self.check(await heard.status.value, told)
      }
    }
  }

  /// Checks that every round that begins ends, and that the rounds' numbers match the delegate calls.
  private static func check(_ updates: [ZDCSyncStatus], _ told: [String]) throws {
    var (isPulling, isPushing, announced) = (false, false, 0)
    for update in updates {
      switch update {
      case .pullStarted: (isPulling, isPushing) = (true, false)
      case .pullFinished(_, _, let count):
        #expect(isPulling)
        isPulling = false
        announced += count
      case .pushStarted: (isPulling, isPushing) = (false, true)
      case .pushFinished:
        #expect(isPushing)
        isPushing = false
      case .security(_, let error): throw error
      default: break
      }
    }
    let discovered = told.filter { line in
      ["new", "modified", "moved", "deleted "].contains { line.hasPrefix($0) }
    }
    // Pages that come with a refused push are reported by the calls only.
    #expect(announced <= discovered.count)
    #expect(announced > 0)
  }

  /// - the app throws from one of three calls: the transaction rolls back, and its calls are made again
  /// => the delegate gets some of them twice; the stream reports each once, after its commit
  @Test func rolledBackChanges_areNotInTheStream() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for name in ["/1", "/2", "/3"] { try await a.create(name) }
      try await a.sync()
      let heard = try Listening(b)
      b.recorder.on(.new, "/2") { _, _ in throw AppError() }
      await #expect(throws: AppError.self) { try await b.pull() }
      try await b.pull()
      try await b.relaunch()
      #expect(Self.told(b).count > 3)
      #expect(await heard.events.value.sorted() == ["new /1", "new /2", "new /3"])
    }
  }

  @Test func inTheBackground_theSameEventsArrive() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let heard = try Listening(b)
      try await b.whileRunning {
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
        try await b.create("/g", "1")
        await b.recorder.wait(for: "pushed /g")
        try await a.sync()
        try await a.rename("/g", to: "h")
        try await a.sync()
        await b.recorder.wait(for: "moved /g -> /h")
      }
      try await b.relaunch()
      #expect(await heard.events.value == Self.told(b))
      let pulls = await heard.status.value.compactMap { update -> Int? in
        if case .pullFinished(_, _, let announced) = update { announced } else { nil }
      }
      #expect(pulls.reduce(0, +) == 2, "what events bring is a pull, too")
    }
  }

  @Test func aSlowReader_missesTheOldestEvents_andLearnsHowMany() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.write { _, cloud in
        for number in 0..<1_203 { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"])) }
      }
      try await a.sync()
      var events = try b.syncManager.nodeEvents.makeAsyncIterator()
      try await b.pull()
      #expect(await events.next() == .missed(203))
      var lines: [String] = []
      while lines.count < 1_000, let event = await events.next() { lines.append(Self.line(event)) }
      #expect(lines == Array(b.recorder.lines.suffix(1_000)))
    }
  }
}

/// Changes and syncs of two devices, drawn from a seed.
private struct RandomWork {
  private var numbers: SeededNumbers
  private var next = 0

  init(seed: UInt64) { numbers = SeededNumbers(seed: seed &+ 77) }

  mutating func step(_ devices: [TestDevice]) async throws {
    let device = devices[Int.random(in: 0..<devices.count, using: &numbers)]
    let kind = Int.random(in: 0..<12, using: &numbers)
    next += 1
    let paths = try await device.tree(versions: false).split(separator: "\n").map { line in
      String(line.prefix { $0 != " " })
    }
    let path = paths.randomElement(using: &numbers)
    switch (kind, path) {
    case (0..<4, _): try await device.create("/n\(next)", "\(next)")
    case (4..<6, let path?): try await device.edit(path, "\(next)")
    case (6, let path?): try await device.rename(path, to: "r\(next)")
    case (7, let path?): try await device.delete(path)
    case (8, _): try await device.pull()
    case (9, _): _ = try await device.push()
    default:
      try await device.sync()
      try await device.download()
    }
  }
}
