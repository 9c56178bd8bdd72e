import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Engines that run, end and run again in one process.
@Suite(.timeLimit(.minutes(20))) struct SecondRunTests {
  @Test("C1: a second run of the same manager pushes, pulls and notifies as the first one did")
  func secondRun_doesWhatTheFirstDid() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      let manager = try a.syncManager
      let events = try a.syncManager.statusUpdates
      for run in 1...3 {
        try await a.whileRunning {
          try await a.create("/mine\(run)", "a")
          await a.recorder.wait(for: "pushed /mine\(run)")
          try await b.create("/theirs\(run)", "b")
          try await b.sync()
          await a.recorder.wait(for: "new /theirs\(run)")
        }
        #expect(try a.syncManager === manager)
      }
      var online = 0
      for await update in events {
        if case .online = update { online += 1 }
        if online == 3 { break }
      }
      try await world.settle(a, b)
    }
  }

  @Test("C1: the second run sends changes that were queued between the two")
  func queuedBetweenTwoRuns_isSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.whileRunning {}
      try await a.create("/f", "1")
      try await a.whileRunning { await a.recorder.wait(for: "pushed /f") }
      try await a.create("/g", TestContent(data: EndToEndTests.bytes(200_000, seed: 1)))
      try await a.whileRunning { await a.recorder.wait(for: "pushed /g") }
    }
  }

  @Test("an event that the first run left unprocessed does not stop the events of the second")
  func eventOfTheFirstRun_isForgotten() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await b.sync()
      let scheduler = try await a.syncManager.engine(for: a.localUserID)
      try await a.whileRunning {
        for worker in await scheduler.knownWorkers {
          let zone = try #require(try await scheduler.zones().first { $0.id == worker.zone }?.zone)
          let status = ZoneStatus(zone: zone, seq: 1, head: .zero)
          #expect(await worker.add(HeadEvent(status: status, page: nil)))
        }
      }
      try await a.whileRunning {
        try await b.create("/theirs", "b")
        try await b.sync()
        await a.recorder.wait(for: "new /theirs")
      }
    }
  }
}
