import Testing
import ZeroDarkCloudTesting

/// Two devices change the same things without knowing of each other. => Both and the server end with the tree that PROTOCOL 3.7 names, or what differs is
/// said to wait for the app.
@Suite(.serialized) struct ConvergenceTests {
  @Test(arguments: ConvergenceTable.all)
  func twoDevices_oneOutcome(_ row: ConvergenceRow) async throws {
    try await TestWorld.run { world in
      let a = ConvergenceRow.Actor(device: try await world.device("A"), folder: "/w")
      let b = ConvergenceRow.Actor(device: try await world.device("B"), folder: "/w")
      try await play(row, a, b, world)
      try await world.settle(a.device, b.device)
      #expect(try await a.tree() == row.outcome.a ?? row.outcome.server)
      #expect(try await b.tree() == row.outcome.b ?? row.outcome.server)
      if row.outcome.a != nil { world.mayWait(a.device) }
      if row.outcome.b != nil { world.mayWait(b.device) }
      let witness = ConvergenceRow.Actor(device: try await world.device("W"), folder: "/w")
      try await world.settle(witness.device)
      #expect(try await witness.tree() == row.outcome.server)
    }
  }

  @Test func theTableIsWhole() {
    let count = Dictionary(grouping: ConvergenceTable.all, by: \.relation).mapValues(\.count)
    // 15 unordered pairs where the two sides are alike, 25 ordered ones for parent and child, three orders each.
    #expect(count[.sameNode] == 45)
    #expect(count[.parentAndChild] == 75)
    #expect(count[.sameName] == 45)
    #expect(Set(ConvergenceTable.all.map(\.testDescription)).count == ConvergenceTable.all.count)
  }

  private func play(
    _ row: ConvergenceRow, _ a: ConvergenceRow.Actor, _ b: ConvergenceRow.Actor, _ world: TestWorld
  ) async throws {
    try await a.device.create(a.folder)
    try await row.scene.start(a)
    try await world.settle(a.device, b.device)
    try await row.scene.a(a)
    if row.scene.isAUnderWay {
      a.device.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: (any Error).self) { try await a.device.push() }
      try await b.device.pull()
      try await b.device.download()
    }
    switch row.order {
    case .aFirst:
      try await a.device.sync()
      try await row.scene.b(b)
      try await b.device.sync()
    case .bFirst:
      try await row.scene.b(b)
      try await b.device.sync()
      try await a.device.sync()
    case .bothOffline:
      try await row.scene.b(b)
      try await a.device.push()
      try await b.device.push()
    }
  }
}
