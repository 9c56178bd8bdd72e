import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Random histories of branches that are shared, changed, moved and ended by two devices of their owner and by a member, each
/// of which syncs now and then.
struct BranchHistoryTests {
  private struct History {
    let people: ListChangeTests.People
    let second: TestDevice
    var random: SeededNumbers
    var count = 0

    var owners: [TestDevice] { [people.alice, second] }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &random)] }

    /// A folder, or a node in it, as the owner sees it.
    mutating func path() -> String { "/f\(pick([0, 1, 2]))" + pick(["", "/x", "/x/y"]) }

    mutating func step() async throws {
      let (owner, path, letters) = (pick(owners), path(), pick(["r", "rw"]))
      let all = owners + [people.bob]
      let device = pick(all)
      count += 1
      switch Int.random(in: 0..<12, using: &random) {
      case 0, 1, 2: try await attempt { _ = try await owner.share(path, with: people.carol, letters) }
      case 3, 4: try await attempt { try await owner.delete(path) }
      case 5: try await attempt { try await people.bob.delete(try people.bob.path(path, of: people.alice)) }
      case 6, 7: try await attempt { try await edit(device, path) }
      case 8: try await attempt { try await owner.rename(path, to: "x") }
      default: try await device.sync()
      }
    }

    private func edit(_ device: TestDevice, _ path: String) async throws {
      let path = device === people.bob ? try device.path(path, of: people.alice) : path
      for part in [path, path + "/x", path + "/x/y"] {
        do { try await device.create(part, "\(device.name) \(count)") } catch let error as ZDCCloudError
          where error.code == .conflict
        { try await device.edit(part, "\(device.name) \(count)") }
      }
    }

    /// The node may be gone, or be another user's.
    private func attempt(_ body: () async throws -> Void) async throws {
      do { try await body() } catch is ZDCCloudError {} catch is TestFailure {} catch is ZDCSecurityError {}
    }
  }

  @Test(arguments: 1...8) func everyDeviceAgrees(seed: UInt64) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob) = (people.alice, people.bob)
      for path in ["/f0", "/f0/x", "/f0/x/y", "/f1", "/f1/x", "/f2"] { try await alice.create(path, path) }
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      let second = try await world.device("second")
      try await second.sync()
      try await second.meet(people.carol)
      try await second.meet(bob)
      for device in [alice, second, bob] { Self.acceptDeletions(device) }
      var history = History(people: people, second: second, random: SeededNumbers(seed: seed))
      for _ in 0..<40 { try await history.step() }
      try await world.settle(alice, second, bob)
      let tree = try await alice.tree(versions: false)
      #expect(try await second.tree(versions: false) == tree, "seed \(seed)")
      #expect(try await bob.tree(of: alice) == tree, "seed \(seed)")
      for device in [alice, second] {
        #expect(try await device.queueCount() == 0, "seed \(seed)")
        // Each branch that is left has a place.
        #expect(try await Self.unmounted(device) == 0, "seed \(seed), \(device.name)")
      }
    }
  }

  /// Lets the app keep nothing that others have deleted, and take the cloud's version of content.
  private static func acceptDeletions(_ device: TestDevice) {
    device.recorder.dataConflictPolicy = .takeCloud
    device.recorder.on(.deletedDirty, times: .max) { [unowned device] node, transaction in
      let transaction = try #require(transaction as? ZDCReadWriteTransaction)
      let cloud = try #require(device.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
      try cloud.delete(node)
    }
  }

  private static func unmounted(_ device: TestDevice) async throws -> Int {
    try await device.database.read { transaction in
      try transaction.zones.zones(localUser: 1).filter { zone in
        try !zone.isTrunk && transaction.mounts.pointer(ofZone: zone.id) == nil
      }.count
    }
  }
}
