import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Four people who share folders and their whole trees at random, follow what they get, and write to each other.
struct SharingCircle {
  private static let folders = 3

  let people: [TestDevice]
  /// The number of named zones that belonged neither to the sender nor to the recipient.
  private(set) var namedOfOthers = 0
  private let world: TestWorld
  private var wires: [Wire] = []
  private var random: Dice

  init(_ world: TestWorld, seed: UInt64) async throws {
    let three = try await ListChangeTests.People(world)
    let dave = try await world.device("dave", account: "dave")
    try await dave.sync()
    people = [three.alice, three.bob, three.carol, dave]
    self.world = world
    random = Dice(seed: seed)
    for person in people { wires.append(try await Wire(of: person)) }
    try await begin()
  }

  /// Each person shares a folder with two others, who follow it.
  private func begin() async throws {
    for person in people {
      for other in others(than: person) { try await person.meet(other) }
      for folder in 0..<Self.folders { try await person.create("/\(folder)", "0") }
      try await person.sync()
    }
    for person in people {
      for other in others(than: person).prefix(2) {
        try await person.share("home:/0", with: other)
        try await person.sync()
        try await Self.follow("home:/0", of: person, other)
        try await other.sync()
      }
    }
  }

  private func others(than person: TestDevice) -> [TestDevice] { people.filter { $0 !== person } }

  private static func follow(_ path: String, of owner: TestDevice, _ member: TestDevice) async throws {
    if path == "home:/" {
      try await member.accept(owner)
    } else {
      try await member.accept(try await owner.cloudID(path), of: owner)
    }
  }

  /// Everyone changes an access list and all folders, and then writes to everyone.
  mutating func play(_ round: Int) async throws {
    for person in people { try await change(person, round) }
    for index in people.indices { try await write(index, round) }
  }

  private mutating func change(_ person: TestDevice, _ round: Int) async throws {
    let other = others(than: person)[random.roll(people.count - 1)]
    let path = random.roll(4) == 0 ? "home:/" : "home:/\(random.roll(Self.folders))"
    let isRemoval = random.roll(3) == 0
    if isRemoval {
      try await person.unshare(path, with: other)
    } else {
      try await person.share(path, with: other)
    }
    for folder in 0..<Self.folders { try await person.edit("/\(folder)", "\(round)") }
    try await person.sync()
    // A folder that is shared like the tree around it has no zone of its own to follow.
    if !isRemoval { _ = try? await Self.follow(path, of: person, other) }
    try await other.sync()
  }

  private mutating func write(_ index: Int, _ round: Int) async throws {
    let sender = people[index]
    let access = try AccessModel(world.server)
    for recipient in others(than: sender) {
      try await sender.send("\(round)", to: recipient)
      try await recipient.acceptMessages(of: sender)
    }
    try await sender.sync()
    for recipient in others(than: sender) {
      let bodies = try await wires[index].bodies(for: recipient)
      #expect(bodies.count == 1, "\(sender.name) to \(recipient.name)")
      try check(bodies.flatMap(\.fields.heads).map(\.zone), sender, recipient, access)
    }
  }

  private mutating func check(
    _ named: [ZoneID], _ sender: TestDevice, _ recipient: TestDevice, _ access: AccessModel
  ) throws {
    let users = [try sender.userID, try recipient.userID]
    let trees = users.map { TreeID.derive(owner: $0, trunk: .home, appTreeID: TestDevice.treeID) }
    for zone in named {
      let isShared = users.allSatisfy { access.isMember($0, of: zone) }
      #expect(isShared, "\(sender.name) names \(zone.root.text) to \(recipient.name)")
    }
    namedOfOthers += named.filter { !trees.contains($0.tree) }.count
  }
}
