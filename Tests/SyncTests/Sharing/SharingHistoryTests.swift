import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Random grants, removals and edits of three people, against a model: a map from member to permissions.
struct SharingHistoryTests {
  private struct Model {
    var permissions: [String: String] = [:]
    var count = 0

    mutating func name() -> String {
      count += 1
      return "/n\(count)"
    }
  }

  private static let letters = ["r", "rw", "rws"]

  private static func step(
    _ people: ListChangeTests.People, _ model: inout Model, _ random: inout SeededNumbers
  ) async throws {
    let alice = people.alice
    let members = [people.bob, people.carol]
    let member = members[Int.random(in: 0..<2, using: &random)]
    switch Int.random(in: 0..<9, using: &random) {
    case 0, 1:
      let wanted = letters[Int.random(in: 0..<3, using: &random)]
      try await alice.share(with: member, wanted)
      model.permissions[member.name] = wanted
    case 2:
      try await alice.unshare(with: member)
      model.permissions[member.name] = nil
    case 3: try await alice.create(model.name(), "alice")
    case 4, 5: try await change(member, of: alice, model.name())
    case 6: try await alice.sync()
    case 7: try await member.sync()
    default: try await accept(member, alice)
    }
  }

  /// A member changes their copy, as far as they know that they may.
  private static func change(_ member: TestDevice, of alice: TestDevice, _ name: String) async throws {
    guard try await member.tree(of: alice) != nil else { return }
    do {
      try await member.create(try member.path(name, of: alice), member.name)
    } catch let error as ZDCCloudError { #expect(error.code == .notAllowed) }
  }

  private static func accept(_ member: TestDevice, _ alice: TestDevice) async throws {
    do { try await member.accept(alice) } catch let error as ServerError { #expect(error.code == .notFound) }
  }

  @Test(arguments: 1...8) func everyHistoryAgreesWithTheModel(seed: UInt64) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let alice = people.alice
      var random = SeededNumbers(seed: seed)
      var model = Model()
      for _ in 0..<30 { try await Self.step(people, &model, &random) }
      // A reader's queued changes wait, so that each member may write in the end.
      for member in [people.bob, people.carol] where model.permissions[member.name] == "r" {
        try await alice.share(with: member, "rw")
        model.permissions[member.name] = "rw"
      }
      try await alice.sync()
      for member in [people.bob, people.carol] {
        try await member.sync()
        if model.permissions[member.name] != nil { try await Self.accept(member, alice) }
      }
      try await world.settle(alice, people.bob, people.carol)
      #expect(try await alice.members(people.bob, people.carol) == model.permissions, "seed \(seed)")
      let tree = try await alice.tree(versions: false)
      for member in [people.bob, people.carol] {
        let expected = model.permissions[member.name] == nil ? nil : tree
        #expect(try await member.tree(of: alice) == expected, "seed \(seed), \(member.name)")
      }
    }
  }
}
