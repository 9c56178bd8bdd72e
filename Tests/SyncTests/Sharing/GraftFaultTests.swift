import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Guests who accept and leave while the network or the process fails.
struct GraftFaultTests {
  typealias Invited = GraftTests.Invited
  typealias Grafted = GraftEndingTests.Grafted

  @Test("a graft with lost answers, lost requests and repeated ones, of each of its requests", arguments: 0..<3, 0..<3)
  func faultsWhileAccepting(_ number: Int, route: Int) async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      let phone = try await world.device("phone", account: "bob")
      let fault: Fault = [.loseResponse, .loseRequest, .duplicate][number]
      let (method, pattern) = [("POST", Routes.commits), ("PUT", Routes.membership), ("GET", Routes.zoneCommits)][route]
      let node = try await bob.graft("/list", invited.invite, from: invited.alice)
      bob.network.fail(fault, method, pattern)
      do { try await bob.sync() } catch { #expect(error is TransportError) }
      try await invited.alice.create("/Groceries/meanwhile", "m")
      try await invited.expectEqual("/list", on: bob, phone)
      #expect(try await bob.node("/list").uuid == node.uuid)
      #expect(bob.recorder.take().filter { $0 == "new /list" }.count == 1)
      for device in [bob, phone] { #expect(try await device.queueCount() == 0) }
    }
  }

  @Test("lost answers, lost requests and repeated ones, of the pointer and of the removal", arguments: 0..<3, [0, 1])
  func lostAnswers(_ number: Int, skipped: Int) async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob) = (grafted.alice, grafted.bob)
      try await bob.delete("/Groceries")
      if skipped == 1 { try await bob.push() }
      let fault: Fault = [.loseResponse, .loseRequest, .duplicate][number]
      bob.network.fail(fault, "POST", Routes.commits)
      do { try await bob.sync() } catch { #expect(error is TransportError) }
      try await alice.edit("/Groceries/D", "later")
      try await alice.sync()
      try await grafted.expectEnd()
    }
  }

  @Test("killed after each of its transactions, leaving is complete", arguments: [TestDevice.Network.dead, .alive])
  func killedAnywhere(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      let phone = try await world.device("phone", account: "bob")
      var kills = 0
      for commits in 0..<20 {
        if try await alice.members(bob, of: "/Groceries").isEmpty {
          try await alice.share("/Groceries", with: bob)
          try await alice.sync()
        }
        try await bob.graft("/list", try await alice.invite("/Groceries"), from: alice)
        try await world.settle(bob, phone)
        try await bob.delete("/list")
        bob.die(afterCommits: commits, network: network)
        do { try await bob.sync() } catch { #expect(bob.isDead, "\(error)") }
        let isKilled = bob.isDead
        if isKilled { kills += 1 }
        try await bob.relaunch()
        try await world.settle(bob, phone, alice)
        for device in [bob, phone] {
          #expect(try await device.tree() == "")
          #expect(try await device.queueCount() == 0)
        }
        #expect(try await alice.members(bob, of: "/Groceries") == [:])
        if !isKilled { break }
      }
      #expect(kills >= 2 && kills < 20, "\(kills)")
    }
  }
}
