import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Devices whose engines run: changes arrive through the event stream.
@Suite(.timeLimit(.minutes(10))) struct EventTests {
  /// The commit rides along with the event: nothing is asked for.
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

  @Test func changeOfTheApp_goesOutByItself() async throws {
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
        }
      }
    }
  }

  /// - the server restarts: the stream ends
  /// => the device connects again and gets what came meanwhile
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
