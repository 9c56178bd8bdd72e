import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Event streams that are slow, cut, duplicated and out of order, and clocks that are years off. => The same final
/// state.
struct StreamFaultTests {
  enum Kind: String, Sendable, CaseIterable {
    case doubled, reversed, halved, everySecondLost, foreign
  }

  private static func lie(_ kind: Kind) -> Lie {
    switch kind {
    case .doubled: .events { $0 + $0 }
    case .reversed: .events { $0.reversed() }
    // An event that is cut in the middle is not an event.
    case .halved: .events { events in events.map { $0.contains("event: head") ? ":\n\n" : $0 } }
    case .everySecondLost:
      .events { events in events.enumerated().filter { $0.offset % 2 == 0 }.map(\.element) }
    case .foreign: .events { ["event: later\ndata: {}\n\n"] + $0 }
    }
  }

  /// B listens while A writes. The next pull delivers what the stream does not.
  @Test(arguments: Kind.allCases) func disturbedStream_endsInTheSameState(_ kind: Kind) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await world.device("A")
      let b = try await TestDevice("B", server: world.server, clock: world.clock, through: hostile)
      try await b.login(words: world.words() ?? [])
      hostile.tell(Self.lie(kind))
      try await b.whileRunning {
        for number in 1...4 {
          try await a.create("/\(number)", "n")
          try await a.sync()
        }
      }
      hostile.stopTampering()
      try await TestWorld.settle([a, b])
      #expect(try await b.tree() == (try await a.tree()))
      #expect(try await b.securityErrors() == [])
      try await b.close()
    }
  }

  /// - slices of one byte
  @Test func slowStream_bringsEverything() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      b.network.fail(.slowResponse(bytesAtOnce: 1), "GET", "/v1/events")
      try await b.whileRunning {
        try await a.create("/f", "1")
        try await a.sync()
        await b.recorder.wait(for: "new /f")
      }
      try await world.settle(a, b)
    }
  }

  /// Clocks two years apart, either way.
  @Test(arguments: [-730, 730]) func clockYearsOff_changesNothing(days: Int) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let late = ManualClock(startingAt: world.clock.now.addingTimeInterval(Double(days) * 86_400))
      let b = try await TestDevice("B", server: world.server, clock: late)
      try await b.login(words: world.words() ?? [])
      for (device, name) in [(a, "a"), (b, "b"), (a, "c")] {
        try await device.create("/\(name)", name)
        try await TestWorld.settle([a, b])
      }
      try await b.edit("/a", "by b")
      try await TestWorld.settle([b, a])
      try await a.delete("/b")
      try await TestWorld.settle([a, b])
      #expect(try await a.tree(versions: false) == "/a  \"by b\"\n/c  \"c\"")
      #expect(try await b.tree() == (try await a.tree()))
      #expect(try await b.securityErrors() == [])
      try await b.close()
    }
  }
}
