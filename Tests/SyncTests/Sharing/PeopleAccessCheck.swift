import Foundation
import GRDB
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Who has which texts and nodes at the end of a random history of several people, against the access lists.
struct PeopleAccessCheck {
  let people: [[TestDevice]]
  let model: PeopleModel
  let access: AccessModel
  let rights: RightsModel

  private let texts: [String: WrittenText]

  init(people: [[TestDevice]], model: PeopleModel, access: AccessModel, rights: RightsModel) {
    (self.people, self.model, self.access, self.rights) = (people, model, access, rights)
    texts = model.textsWithAllOwners()
  }

  func run() async throws {
    try await checkNodes()
    try await checkReaders()
    try rights.check()
  }

  /// No device has a node of a branch whose list does not name its user.
  private func checkNodes() async throws {
    for device in people.joined() {
      let user = try device.userID
      for (zone, node) in try await device.foreignNodes() where !access.isMember(user, of: zone) {
        throw TestFailure("\(device.name) has the node \(node.text) without access")
      }
    }
  }

  /// No app has a text that was written when its user had no access, and did not get it again.
  private func checkReaders() async throws {
    for (person, devices) in people.enumerated() {
      for device in devices {
        let found = try await device.lines()
        for (token, text) in texts.sorted(by: { $0.key < $1.key }) where found.contains(token) {
          guard try mayRead(text, person) else {
            throw TestFailure("\(device.name) has \(token.prefix(12)) without access")
          }
        }
      }
    }
  }

  private func mayRead(_ text: WrittenText, _ person: Int) throws -> Bool {
    if person == text.writer || text.owners.union(text.correspondents).contains(person) { return true }
    return try text.owners.contains { try !permissions(of: person, in: $0, text).isEmpty }
  }

  private func permissions(of person: Int, in owner: Int, _ text: WrittenText) throws -> [ZoneACL.Permissions] {
    let (user, ownerID) = (try people[person][0].userID, try people[owner][0].userID)
    return access.permissions(of: user, in: ownerID, since: text.position)
  }

  /// No other device has a text that an access list did not let its writer send.
  func checkWriters() async throws {
    for (person, devices) in people.enumerated() {
      for device in devices {
        let found = try await device.lines()
        for (token, text) in texts.sorted(by: { $0.key < $1.key }) where found.contains(token) {
          if text.device == device.name || text.correspondents.contains(person) { continue }
          guard try mayWrite(token, text) else {
            throw TestFailure("\(device.name) has \(token.prefix(12)), which was not allowed")
          }
        }
      }
    }
  }

  private func mayWrite(_ token: String, _ text: WrittenText) throws -> Bool {
    if text.owners.contains(text.writer) { return true }
    return try text.owners.contains { owner in
      try permissions(of: text.writer, in: owner, text).contains { try allow($0, token, text) }
    }
  }

  /// Where `L` and `U` allow a text depends on the node's place when its record was sent, and other people may have moved it
  /// since it was written. So the log decides: it has a put of the node by the writer below the root of a zone.
  private func allow(_ permissions: ZoneACL.Permissions, _ token: String, _ text: WrittenText) throws -> Bool {
    guard permissions.contains(.write), !permissions.contains(.recordsOnly) else { return false }
    if permissions.contains(.writeOnce), !text.isCreation { return false }
    guard !permissions.isDisjoint(with: [.leafsOnly, .userOnly]) else { return true }
    let nodes = rights.topNodes(by: try people[text.writer][0].userID, since: text.position)
    return model.nodes.isWritten(token, into: nodes)
  }
}

extension TestDevice {
  /// The nodes of other people's branches.
  fileprivate func foreignNodes() async throws -> [(ZoneID, NodeID)] {
    try await database.read { transaction in
      try Row.fetchAll(
        transaction.database,
        sql: """
          SELECT z.treeID, z.zoneRoot, n.nodeID FROM zdc_node n JOIN zdc_zone z ON z.id = n.zone
          WHERE z.owner IS NOT NULL AND n.recordVersion > 0
          """
      ).compactMap { row in
        guard let tree = TreeID(row[0] as Data), let root = NodeID(row[1] as Data), let node = NodeID(row[2] as Data)
        else { return nil }
        return (ZoneID(tree: tree, root: root), node)
      }
    }
  }

  /// All lines that the app has, also of nodes that are gone.
  fileprivate func lines() async throws -> Set<String> {
    try await database.read { transaction in
      var lines: Set<String> = []
      try transaction.enumerateKeysAndObjects(TestContent.self, inCollection: TestContent.collection) { _, content, _ in
        guard content.data.count < 100_000 else { return }
        lines.formUnion(String(decoding: content.data, as: UTF8.self).split(separator: "\n").map(String.init))
      }
      return lines
    }
  }
}
