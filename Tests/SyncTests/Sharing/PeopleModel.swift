import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// What a random history of several people has done: which texts and messages must exist at its end, and who may have them.
struct PeopleModel {
  private(set) var nodes = HistoryModel()
  private(set) var texts: [String: WrittenText] = [:]
  /// For each owner, the people whose access may have ended or been narrowed.
  private(set) var restricted: [Int: Set<Int>] = [:]
  var messages = MessageModel()

  /// Records that a person's access to an owner's branches may have ended or been narrowed.
  mutating func restrict(_ person: Int, by owner: Int) { restricted[owner, default: []].insert(person) }

  /// Records a text that was written into a node.
  mutating func wrote(_ token: String, _ text: WrittenText, into node: ZDCNode) {
    nodes.wrote(token, cloudID: node.cloudID)
    texts[token] = text
  }

  mutating func placed(_ node: ZDCNode, below parent: ZDCNode) {
    nodes.placed(node.cloudID, below: parent.cloudID)
  }

  /// Records that nodes were moved into an owner's tree.
  mutating func moved(_ cloudIDs: Set<String>, to owner: Int) {
    for token in nodes.tokens where nodes.isWritten(token, into: cloudIDs) { texts[token]?.owners.insert(owner) }
  }

  mutating func deleted(_ cloudIDs: [String], texts: [String]) { nodes.delete(cloudIDs, texts: texts) }

  /// Records which cloud IDs are the same node: a move to another zone changes them, but not a device's local ID.
  mutating func noteIdentities(of device: TestDevice) async throws {
    for row in try await device.rows() { nodes.isSame("\(device.name) \(row.uuid)", row.cloudID) }
  }

  /// Records that a device has sent all of its changes.
  mutating func sentAll(_ device: TestDevice) {
    for (token, text) in texts where text.device == device.name && !text.isRestricted(restricted) {
      texts[token]?.isSent = true
    }
  }
}
