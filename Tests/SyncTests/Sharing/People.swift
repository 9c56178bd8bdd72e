import Synchronization
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The people of a random history, each with one or more devices.
struct People {
  private static let names = ["alice", "bob", "carol", "dave", "eve"]
  private static let maximumDevices = 6

  let world: TestWorld
  /// The devices of each person.
  let devicesByPerson: [[TestDevice]]
  /// What they asked for when they changed lists.
  let asked = AskedRights()

  init(_ world: TestWorld, count: Int, _ numbers: inout SeededNumbers) async throws {
    self.world = world
    var people: [[TestDevice]] = []
    for name in Self.names.prefix(count) { people.append([try await world.device(name, account: name)]) }
    for _ in 0..<Int.random(in: 0...min(2, Self.maximumDevices - count), using: &numbers) {
      let person = Int.random(in: 0..<count, using: &numbers)
      let name = "\(Self.names[person]) \(people[person].count + 1)"
      people[person].append(try await world.device(name, account: Self.names[person]))
    }
    devicesByPerson = people
    for device in devices {
      device.recorder.dataConflictPolicy = .mergeLines
      device.countMessageCalls()
      try await device.sync()
    }
    try await introduce()
  }

  /// All people know each other, and accept each other's messages.
  private func introduce() async throws {
    for (person, devices) in devicesByPerson.enumerated() {
      for device in devices {
        for other in indices where other != person { try await device.meet(self[other][0]) }
      }
    }
    try await unblockAll()
  }

  var count: Int { devicesByPerson.count }
  var indices: Range<Int> { devicesByPerson.indices }
  var devices: [TestDevice] { Array(devicesByPerson.joined()) }
  subscript(person: Int) -> [TestDevice] { devicesByPerson[person] }

  /// The path of the folder that a person shares.
  func folder(of person: Int) -> String { "/f\(person)" }

  func person(of device: TestDevice) -> Int? { indices.first { self[$0].contains { $0 === device } } }

  /// The owner of the other person's tree that a node is in; nil for a node of the device's own tree.
  func owner(of node: ZDCNode) throws -> Int? {
    try indices.first { try self[$0][0].localUserID == node.anchor?.userID }
  }

  /// Notes a person's new words, with which their later devices log in.
  func setWords(_ words: [String], of person: Int) { world.setWords(words, of: Self.names[person]) }

  /// Another device of a person, which has no data yet.
  func newDevice(of person: Int) async throws -> TestDevice {
    try await world.device("fresh", account: Self.names[person])
  }

  /// Returns the invitations of other people to the nodes that they have at these paths below their folders, and to
  /// branches that they may share.
  func invites(to person: Int, _ paths: [String]) async throws -> [(sender: TestDevice, invite: ZDCGraftInvite)] {
    var invites: [(sender: TestDevice, invite: ZDCGraftInvite)] = []
    for owner in indices where owner != person {
      for path in paths.map({ folder(of: owner) + $0 }) {
        guard let invite = try await self[owner][0].invite(path, to: self[person][0]) else { continue }
        invites.append((self[owner][0], invite))
      }
    }
    return try await invites + memberInvites(to: person)
  }

  /// Returns the invitations of members who may share the branch of another person.
  private func memberInvites(to person: Int) async throws -> [(sender: TestDevice, invite: ZDCGraftInvite)] {
    var invites: [(sender: TestDevice, invite: ZDCGraftInvite)] = []
    for member in indices where member != person {
      let device = self[member][0]
      for path in try await device.graftPaths() {
        guard let owner = try self.owner(of: try await device.node(path)), owner != person,
          try await device.members(device, of: path)[device.name]?.contains("s") == true,
          let invite = try await device.invite(path, to: self[person][0])
        else { continue }
        invites.append((device, invite))
      }
    }
    return invites
  }

  /// Lets all people accept the messages of all others.
  func unblockAll() async throws {
    for (person, devices) in devicesByPerson.enumerated() {
      for device in devices {
        for other in indices where other != person { try await device.acceptMessages(of: self[other][0]) }
      }
    }
  }

  /// Gives every member all rights to write.
  func letAllWrite() async throws {
    for list in try AccessModel(world.server).newest {
      guard let owner = try indices.first(where: { try self[$0][0].userID == list.owner }) else { continue }
      let narrowed = list.entries.filter { !$0.permissions.writesFreely }
      guard !narrowed.isEmpty else { continue }
      for entry in narrowed { try note([.read, .write], for: entry.user, in: list.zone, by: self[owner][0]) }
      try await self[owner][0].change(list.zone) { cloud, node in
        for entry in narrowed {
          _ = try cloud.share(nodeID: node, withUserID: entry.user.text, item: ZDCShareItem(permissions: "rw"))
        }
      }
    }
  }

  /// Syncs until nothing changes any more. Changes that members may not send stay queued.
  func settleAsTheyAre() async throws {
    for _ in 0..<3 {
      world.clock.advance(by: .seconds(1_800))
      try await TestWorld.settle(devices)
    }
  }

  /// Syncs until nothing changes any more. Every member may write in the end, so that all queued changes can be sent,
  /// except those of lists by members who may not share any more.
  func settle(_ log: HistoryLog) async throws {
    for round in 0..<12 {
      world.clock.advance(by: .seconds(120))
      try await TestWorld.settle(devices)
      if try await queues().isEmpty { return }
      if round % 2 == 0 { try await letAllWrite() }
      // A device that has not read yet that its user may write refuses this, and does it in the next round.
      for device in devices where try await device.queueCount() > 0 {
        await log.attempt("revives its queue", device) { try await device.reviveAll() }
      }
    }
    throw TestFailure("the queues do not drain:\n\(try await queues())")
  }

  /// The queues that are not empty. Changes that a list does not allow wait for another list, which may never come.
  private func queues() async throws -> String {
    var queues = ""
    for device in devices {
      let (count, waiting) = (try await device.queueCount(), try await device.disallowedListChanges().count)
      if count > waiting { queues += "\(device.name): \(try await device.queue())\n" }
    }
    return queues
  }
}

/// The steps of a history, with their outcomes.
final class HistoryLog: Sendable {
  private let kept = Mutex<[String]>([])

  var lines: [String] { kept.withLock { $0 } }

  func append(_ line: String) { kept.withLock { $0.append(line) } }

  /// Performs a step. Returns whether it threw no error.
  @discardableResult
  func attempt(_ what: String, _ device: TestDevice, _ body: () async throws -> Void) async -> Bool {
    do {
      try await body()
      append("\(device.name) \(what)")
      return true
    } catch {
      append("\(device.name) \(what): \(error)")
      return false
    }
  }
}

extension TestDevice {
  /// An invitation for a member; nil if the node is not the top of a branch with that member.
  fileprivate func invite(_ path: String, to member: TestDevice) async throws -> ZDCGraftInvite? {
    let user = try member.localUserID
    guard let path = ZDCTreesystemPath(path) else { return nil }
    return try await write { _, cloud in
      guard let node = cloud.node(path: path), node.shareList.shareItem(forUserID: user) != nil else { return nil }
      return cloud.graftInvite(for: node)
    }
  }

  /// Changes something at the top of a branch, if it still exists.
  func change(
    _ zone: ZoneID, _ body: @escaping @Sendable (ZDCCloudTransaction, String) throws -> Void
  ) async throws {
    guard let top = try await rows().first(where: { $0.cloudID == zone.root.text }) else { return }
    try await write { _, cloud in try body(cloud, top.uuid) }
  }
}
