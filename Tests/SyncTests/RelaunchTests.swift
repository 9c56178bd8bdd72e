import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The device dies after every single commit of its database: once with the network gone as well, and once while
/// requests in flight still reach the server. => After the relaunch nothing is lost and nothing is duplicated.
struct RelaunchTests {
  @Test(arguments: [true, false])
  func pushingDevice_diesAnywhere_losesAndDoublesNothing(withNetwork: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/known", "0")
      try await world.settle(a, b)
      var steps = 0
      while true {
        let folder = "/n\(steps)"
        try await Self.queueJob(a, folder, edit: steps)
        a.die(afterCommits: steps, network: withNetwork ? .dead : .alive)
        _ = try? await a.sync()
        let hasDied = a.isDead
        try await a.relaunch()
        a.clock.advance(by: .seconds(120))
        try await world.settle(a, b)
        #expect(try await a.queueCount() == 0, "died after \(steps) commits")
        #expect(try await Self.lines(b, folder) == Self.expected(folder, edit: steps), "died after \(steps) commits")
        #expect(try await Self.lines(a, folder) == Self.expected(folder, edit: steps), "died after \(steps) commits")
        if !hasDied { break }
        steps += 1
      }
      #expect(steps > 4)
      #expect(
        a.recorder.lines.filter { $0.hasPrefix("conflict") || $0.hasPrefix("new") || $0.hasPrefix("moved") } == [])
    }
  }

  /// Queues every kind of change, small and large.
  private static func queueJob(_ a: TestDevice, _ folder: String, edit: Int) async throws {
    try await a.create(folder)
    try await a.create("\(folder)/f", "1")
    try await a.create("\(folder)/film", TestContent(data: EndToEndTests.bytes(70_000, seed: 3)))
    try await a.edit("/known", "edit \(edit)")
    guard edit > 0 else { return }
    try await a.rename("/n\(edit - 1)/f", to: "g")
    try await a.delete("/n\(edit - 1)/film")
  }

  private static func expected(_ folder: String, edit: Int) -> [String] {
    let before =
      edit == 0 ? [] : ["/n\(edit - 1)", "/n\(edit - 1)/g  \"1\""]
    return before + ["\(folder)", "\(folder)/f  \"1\"", "\(folder)/film  (70000 bytes)", "/known  \"edit \(edit)\""]
  }

  /// Returns the lines of the last two jobs and of the node that every job edits.
  private static func lines(_ device: TestDevice, _ folder: String) async throws -> [String] {
    let number = Int(folder.dropFirst(2)) ?? 0
    let lines = try await device.tree(versions: false).split(separator: "\n").map(String.init)
    func of(_ folder: String) -> [String] { lines.filter { $0 == folder || $0.hasPrefix(folder + "/") } }
    return (number == 0 ? [] : of("/n\(number - 1)")) + of(folder) + lines.filter { $0.hasPrefix("/known") }
  }

  @Test func pullingDevice_diesAnywhere_missesNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      var steps = 0
      while true {
        try await a.create("/d\(steps)")
        try await a.create("/d\(steps)/f", "1")
        if steps > 0 {
          try await a.move("/d\(steps - 1)/f", to: "/d\(steps)/moved")
          try await a.delete("/d\(steps - 1)")
        }
        try await a.sync()
        b.die(afterCommits: steps)
        _ = try? await b.sync()
        let hasDied = b.isDead
        try await b.relaunch()
        try await world.settle(b)
        #expect(try await b.tree() == (try await a.tree()), "died after \(steps) commits")
        if !hasDied { break }
        steps += 1
      }
      #expect(steps > 2)
    }
  }

  @Test func freshDevice_diesAnywhere_inLoginAndFirstPull() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for number in 0..<3 { try await a.create("/d\(number)") }
      try await a.sync()
      var steps = 0
      while true {
        let b = try await TestDevice("B", server: world.server, clock: world.clock)
        b.die(afterCommits: steps)
        let words = world.words() ?? []
        _ = try? await b.login(words: words)
        if !b.localUserIDs.isEmpty { _ = try? await b.sync() }
        let hasDied = b.isDead
        try await b.relaunch()
        try await b.login(words: words)
        try await b.sync()
        try await b.download()
        #expect(try await b.tree() == "/d0  v1\n/d1  v1\n/d2  v1", "died after \(steps) commits")
        try await b.close()
        if !hasDied { break }
        steps += 1
      }
      #expect(steps > 2)
    }
  }

  @Test func creatingDevice_diesAnywhere_makesOneAccount() async throws {
    try await TestWorld.run { world in
      for steps in 0..<6 {
        for network in [TestDevice.Network.dead, .alive] {
          let a = try await TestDevice("A", server: world.server, clock: world.clock)
          a.die(afterCommits: steps, network: network)
          _ = try? await a.createAccount()
          try await a.relaunch()
          // Whatever the device reached, and even if it never learned of it, the same call continues.
          let words = try await a.createAccount()
          #expect(try await a.knownAccounts().count == 1)
          #expect(try await a.zdc.localUserManager?.accessWords(for: a.localUserID) == words)
          try await a.pull()
          try await a.create("/f")
          try await a.sync()
          #expect(try await a.tree() == "/f  v1")
          try await a.close()
        }
      }
      // Twelve devices, twelve accounts: none was made twice.
      #expect(try world.server.dump().split(separator: "\n").filter { $0.hasPrefix("account") }.count == 12)
    }
  }

  /// The same with a separate process, which really aborts.
  ///
  /// Waiting for such a process blocks one of the threads that tasks run on until the process ends. The process needs
  /// the server, which runs on the others.
  @Test(.enabled(if: ProcessInfo.processInfo.activeProcessorCount > 1))
  func abortedProcess_leavesAllThatIsNeededToResume() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/known", "0")
      try await world.settle(a, b)
      try await Self.queueJob(a, "/n0", edit: 0)
      let before = a.commits
      try await a.sync()
      let steps = a.commits - before
      // Two commits to the server, each stored before it is sent and completed after it.
      #expect(steps >= 4)
      for step in 1...steps {
        try await Self.queueJob(a, "/n\(step)", edit: step)
        try await a.close()
        let (url, folder, key) = (world.server.url.absoluteString, a.folder.path, a.databaseKey)
        await #expect(processExitsWith: .signal(SIGABRT), "step \(step)") {
          [url = url as String, folder = folder as String, key = key as Data, step = step as Int] in
          let server = try #require(URL(string: url))
          let child = try await TestDevice(
            "child", reopening: URL(fileURLWithPath: folder), databaseKey: key, serverURL: server)
          child.abortProcess(afterCommits: step)
          try await child.sync()
        }
        try await a.relaunch()
        try await world.settle(a, b)
        let lines = try await Self.lines(b, "/n\(step)")
        #expect(lines == Self.expected("/n\(step)", edit: step), "aborted after \(step) commits")
        #expect(try await a.queueCount() == 0)
      }
    }
  }
}
