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

  @Test(
    "killed after each of its transactions, a guest's device learns of the removal once, and unsent changes are kept",
    arguments: [TestDevice.Network.dead, .alive])
  func killedWhileTheyAreRemoved(network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      var kills = 0
      for commits in 0..<20 {
        try await grafted.remove(round: commits)
        grafted.bob.die(afterCommits: commits, network: network)
        do { try await grafted.bob.sync() } catch { #expect(grafted.bob.isDead, "\(error)") }
        let isKilled = grafted.bob.isDead
        if isKilled { kills += 1 }
        try await grafted.bob.relaunch()
        try await grafted.expectRemoval(round: commits)
        if !isKilled { break }
      }
      #expect(kills >= 2 && kills < 20, "\(kills)")
    }
  }

  @Test("lost answers, lost requests and repeated ones, of each request by which a guest learns of the removal")
  func faultsWhileTheyAreRemoved() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      var round = 0
      for fault in [Fault.loseResponse, .loseRequest, .duplicate] {
        for occurrence in 1..<40 {
          try await grafted.remove(round: round)
          grafted.bob.network.fail(fault, occurrence: occurrence)
          do { try await grafted.bob.sync() } catch { #expect(error is TransportError, "\(error)") }
          let hasStruck = grafted.bob.network.hasStruck
          grafted.bob.network.restoreNetwork()
          try await grafted.expectRemoval(round: round)
          round += 1
          #expect(hasStruck || occurrence > 3)
          if !hasStruck { break }
        }
      }
    }
  }
}

extension GraftEndingTests.Grafted {
  /// The owner removes the guest, who has a change that was not sent. From the second round on, the guest is first
  /// invited again.
  fileprivate func remove(round: Int) async throws {
    if round > 0 {
      try await alice.share("/Groceries", with: bob)
      try await alice.sync()
      try await bob.graft("/Groceries", try await alice.invite("/Groceries"), from: alice)
      try await world.settle(bob, phone, alice)
    }
    try await bob.edit("/Groceries/D", "never sent \(round)")
    try await alice.unshare("/Groceries", with: bob)
    try await alice.sync()
  }

  fileprivate func expectRemoval(round: Int) async throws {
    try await expectEnd()
    let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
    #expect(entries.count == round + 1 && entries.allSatisfy { $0.kind == .accessLost }, "\(round): \(entries)")
    #expect(bob.recorder.take().last == "deleted /Groceries", "\(round)")
  }
}
