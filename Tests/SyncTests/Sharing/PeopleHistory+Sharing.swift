import Foundation
import GRDB
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

// Shared branches and grafts.

extension PeopleHistory {
  private static let branches = ["", "", "", "/x", "/x", "/x/y"]
  private static let letters = ["r", "rw", "rw", "rw", "rw", "rws", "rws", "rwW", "rwWB", "rwL", "rwU", "rwR"]

  mutating func shareStep(_ device: TestDevice, of person: Int) async throws {
    switch pick(0...10) {
    case 0...3: _ = try await share(device, of: person)
    case 4...5: try await unshare(device, of: person)
    case 6...8: try await graft(device, of: person)
    case 9: try await changeGraftedList(device)
    default: try await leave(device, of: person)
    }
  }

  private mutating func branch(of person: Int) -> String {
    people.folder(of: person) + Self.branches[pick(0...(Self.branches.count - 1))]
  }

  /// Each person has shared their folder with another person.
  mutating func begin() async throws {
    for (person, devices) in people.devicesByPerson.enumerated() {
      for path in ["", "/x", "/x/y"] { try await devices[0].create(people.folder(of: person) + path) }
      let guest = other(than: person)
      _ = try await people.share(people.folder(of: person), of: devices[0], with: guest, "rw")
      for device in devices { try await device.sync() }
    }
  }

  mutating func share(_ device: TestDevice, of person: Int) async throws -> (guest: Int, [ZDCCloudOperation]) {
    let (path, guest) = (branch(of: person), other(than: person))
    let letters = Self.letters[pick(0...(Self.letters.count - 1))]
    return (guest, await share(device, path, owner: person, with: guest, letters))
  }

  private mutating func share(
    _ device: TestDevice, _ path: String, owner: Int, with guest: Int, _ letters: String
  ) async -> [ZDCCloudOperation] {
    if !["rw", "rws"].contains(letters) { model.restrict(guest, by: owner) }
    let people = people
    var operations: [ZDCCloudOperation] = []
    await log.attempt("shares \(path) with \(people[guest][0].name) \(letters)", device) {
      operations = try await people.share(path, of: device, with: guest, letters)
    }
    return operations
  }

  private mutating func unshare(_ device: TestDevice, of person: Int) async throws {
    let (path, guest) = (branch(of: person), other(than: person))
    await unshare(device, path, owner: person, with: guest)
  }

  private mutating func unshare(_ device: TestDevice, _ path: String, owner: Int, with guest: Int) async {
    model.restrict(guest, by: owner)
    let people = people
    await log.attempt("unshares \(path) with \(people[guest][0].name)", device) {
      try await people.unshare(path, of: device, with: guest)
    }
  }

  /// A member changes the list of another person's branch.
  private mutating func changeGraftedList(_ device: TestDevice) async throws {
    guard let path = try await device.graftPaths().randomElement(using: &numbers),
      let owner = try people.owner(of: try await device.node(path))
    else { return }
    let guest = other(than: owner)
    guard people[guest].allSatisfy({ $0 !== device }) else { return }
    if pick(0...2) == 0 {
      await unshare(device, path, owner: owner, with: guest)
    } else {
      _ = await share(device, path, owner: owner, with: guest, Self.letters[pick(0...(Self.letters.count - 1))])
    }
  }

  private mutating func graft(_ device: TestDevice, of person: Int) async throws {
    let paths = Set(Self.branches).sorted()
    let invites = try await people.invites(to: person, paths)
    guard let (sender, invite) = invites.randomElement(using: &numbers) else { return }
    nextToken += 1
    let place = (pick(0...3) == 0 ? people.folder(of: person) : "") + "/g\(nextToken)"
    await log.attempt("grafts \(invite.cloudID) of \(sender.name) at \(place)", device) {
      try await device.graft(place, invite, from: sender)
    }
  }

  private mutating func leave(_ device: TestDevice, of person: Int) async throws {
    guard let path = try await device.graftPaths().randomElement(using: &numbers) else { return }
    // Leaving discards the changes that the person has not sent.
    for owner in people.indices where owner != person { model.restrict(person, by: owner) }
    let ids = try await device.subtree(path).ids
    let isDone = await log.attempt("leaves \(path)", device) { try await device.delete(path) }
    if isDone { people.noteDeparture(from: ids, by: device) }
  }

  // MARK: The end

  /// An owner removes a member from all branches. Afterwards, everyone who may writes there.
  mutating func removeAMember() async throws {
    let owner = pick(0...(people.count - 1))
    let (device, guest) = (people[owner][0], other(than: owner))
    let (ownerID, guestID) = (try device.userID, try people[guest][0].userID)
    model.restrict(guest, by: owner)
    log.append("\(device.name) removes \(people[guest][0].name) everywhere")
    for list in try AccessModel(world.server).newest where list.owner == ownerID && list.entry(for: guestID) != nil {
      try people.note([], for: guestID, in: list.zone, by: device)
      try await device.change(list.zone) { cloud, node in
        _ = try cloud.unshare(nodeID: node, withUserID: guestID.text)
      }
    }
    try await device.sync()
    for (person, devices) in people.devicesByPerson.enumerated() where person != guest {
      try await devices[0].sync()
      try await writeBelow(owner, devices[0], of: person)
    }
  }

  /// Edits a node of an owner's branches, and creates one there.
  private mutating func writeBelow(_ owner: Int, _ device: TestDevice, of person: Int) async throws {
    var paths: [String] = []
    for path in try await device.paths(below: "") {
      let node = try await device.node(path)
      if try people.owner(of: node) ?? person == owner, !node.isPointer { paths.append(path) }
    }
    guard let edited = paths.randomElement(using: &numbers) else { return }
    try await edit(device, of: person, edited)
    guard let parent = paths.randomElement(using: &numbers) else { return }
    try await create(device, of: person, below: parent)
  }
}

extension TestDevice {
  /// The local nodes, with the IDs under which the cloud knows them.
  func rows() async throws -> [(uuid: String, cloudID: String)] {
    try await database.read { transaction in
      try Row.fetchAll(transaction.database, sql: "SELECT uuid, nodeID FROM zdc_node").map { row in
        (uuid: row["uuid"] as String, cloudID: NodeID(row["nodeID"] as Data)?.text ?? "")
      }
    }
  }
}
