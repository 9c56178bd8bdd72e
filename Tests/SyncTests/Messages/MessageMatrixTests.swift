import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Every fault at every request that the sender and the recipient of a message, a signal, a message with an upload, a profile
/// or a burn make. => A typed error at most, and afterwards the same state as without the fault.
struct MessageMatrixTests {
  enum Kind: CaseIterable, Sendable {
    case profile, burn, message, signal, largeMessage
  }

  enum Side: CaseIterable, Sendable {
    case sender, recipient
  }

  /// Two people who share a tree, and repeat an exchange with new names and texts.
  private struct Exchange {
    let (alice, bob): (TestDevice, TestDevice)

    init(_ server: TestServer, _ clock: ManualClock) async throws {
      alice = try await TestDevice("alice", server: server, clock: clock)
      bob = try await TestDevice("bob", server: server, clock: clock)
      for device in [alice, bob] { try await device.createAccount() }
      try await alice.meet(bob)
      try await bob.meet(alice)
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
    }

    /// Makes what the exchange is about.
    func prepare(_ kind: Kind, _ number: Int) async throws -> ZDCNode? {
      guard kind == .burn else { return nil }
      let message = try await alice.send("regret \(number)", to: bob)
      for device in [alice, bob] { try await drain(device) }
      return message
    }

    /// Makes the change, syncs until the recipient has it, and returns what is wrong then. Leaves no message behind.
    func run(_ kind: Kind, _ number: Int, _ message: ZDCNode?) async throws -> [String] {
      let text = "\(number) " + String(repeating: "x", count: kind == .largeMessage ? 1_000_000 : 0)
      switch kind {
      case .profile: try await alice.setProfile("Alice \(number)")
      case .burn: if let message { try await alice.burn(message) }
      case .message, .largeMessage: try await alice.send(text, to: bob)
      case .signal: try await alice.send(text, to: bob, isSignal: true)
      }
      for device in [alice, bob, alice, bob] { try await drain(device) }
      var faults: [String] = []
      if kind == .profile, try await bob.name(of: alice) != "Alice \(number)" { faults.append("another name") }
      let inbox = [.profile, .burn].contains(kind) ? [] : ["alice: " + text]
      let outbox = [.message, .largeMessage].contains(kind) ? ["me: " + text] : []
      if try await messages(.inbox, bob) != inbox { faults.append("other messages in the inbox") }
      if try await messages(.outbox, alice) != outbox { faults.append("other messages in the outbox") }
      if try await bob.waitingCount() > 0 { faults.append("an envelope in the mailbox") }
      try await deleteMessages()
      return faults
    }

    /// Reads the messages like an app that tries a failed download again.
    private func messages(_ trunk: ZDCTreesystemTrunk, _ device: TestDevice) async throws -> [String] {
      for _ in 0..<3 {
        do {
          let found = try await device.messages(trunk, from: alice)
          if !found.contains(where: { $0.hasSuffix("?") }) { return found }
        } catch let error as TestFailure { throw error } catch {}
        device.clock.advance(by: .seconds(600))
      }
      return try await device.messages(trunk, from: alice)
    }

    private func deleteMessages() async throws {
      for (device, trunk) in [(bob, ZDCTreesystemTrunk.inbox), (alice, .outbox)] {
        try await device.write { _, cloud in
          guard let root = cloud.trunkNode(trunk) else { return }
          for node in try cloud.children(ofNodeID: root.uuid) { try cloud.delete(node) }
        }
        try await drain(device)
      }
    }

    /// Syncs like an app that tries again after each error.
    private func drain(_ device: TestDevice) async throws {
      for _ in 0..<6 {
        do {
          try await device.sync()
          if try await device.queueCount() == 0 { return }
        } catch let error as TestFailure { throw error } catch {}
        device.clock.advance(by: .seconds(600))
      }
      throw TestFailure("\(device.name) does not drain:\n\(try await device.queue())")
    }

    func close() async throws {
      for device in [alice, bob] {
        #expect(try await device.securityErrors() == [], "\(device.name)")
        try await device.close()
      }
    }
  }

  @Test(arguments: Kind.allCases, Side.allCases)
  func everyRequest_disturbedInEveryWay(kind: Kind, side: Side) async throws {
    let clock = ManualClock()
    let server = try await TestServer.start(clock: clock)
    let exchange = try await Exchange(server, clock)
    let network = (side == .sender ? exchange.alice : exchange.bob).network
    // The second exchange is typical: identities and sessions are known by then.
    for number in 0...1 {
      let message = try await exchange.prepare(kind, number)
      network.resetCounts()
      #expect(try await exchange.run(kind, number, message) == [])
    }
    let asked = Set(network.requests.map(\.route.description))
    var number = 1
    for route in WireRoutes.all where asked.contains(route.description) {
      for fault in NetworkMatrixTests.Kind.allCases {
        number += 1
        let message = try await exchange.prepare(kind, number)
        network.fail(fault.fault(clock), route.method, route.pattern)
        #expect(try await exchange.run(kind, number, message) == [], "\(fault) at \(route)")
        #expect(network.hasStruck, "\(route) was not asked for")
        network.restoreNetwork()
      }
    }
    #expect(number > 3 * NetworkMatrixTests.Kind.allCases.count)
    try await exchange.close()
    try await server.stop()
  }
}
