import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The record of a random history of several people: the texts and messages that must exist at its end, and who may have them.
struct PeopleModel {
  private(set) var nodes = HistoryModel()
  private(set) var texts: [String: WrittenText] = [:]
  /// For each owner, the people whose access may have ended or been narrowed.
  private(set) var restricted: [Int: Set<Int>] = [:]
  private(set) var messages = MessageModel()
  private var moves: [(cloudIDs: Set<String>, owner: Int)] = []

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
    moves.append((cloudIDs, owner))
    for token in nodes.tokens where nodes.isWritten(token, into: cloudIDs) { texts[token]?.owners.insert(owner) }
  }

  /// Returns the texts, each with all owners of the trees that it came to with a node above its own. The device that moved
  /// that node need not have known the text.
  func textsWithAllOwners() -> [String: WrittenText] {
    var texts = texts
    for (token, text) in texts {
      let owners = moves.filter { nodes.isWritten(token, atOrBelow: $0.cloudIDs) }.map(\.owner)
      texts[token]?.owners = text.owners.union(owners)
    }
    return texts
  }

  mutating func deleted(_ cloudIDs: [String], texts: [String]) { nodes.delete(cloudIDs, texts: texts) }

  /// Returns whether a text may be missing from the trees: a person has deleted it, or could not send it.
  func mayBeGone(_ token: String) -> Bool {
    guard let text = texts[token], !nodes.mayBeGone(token) else { return true }
    return text.isRestricted(restricted) && !text.isSent
  }

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

// Messages

extension PeopleModel {
  mutating func sent(_ message: SentMessage) { messages.sent(message) }

  mutating func declined(from sender: Int, by person: Int, except kept: Set<String>) {
    messages.declined(from: sender, by: person, except: kept)
  }

  /// Records a burn. A message that its recipient has moved before stays (PROTOCOL 3.11); otherwise either may come first.
  mutating func burned(_ id: String) {
    messages.burned(id)
    for message in messages.messages where message.id == id && texts[message.text]?.isSent == false {
      nodes.delete([], texts: [message.text])
    }
  }

  /// Records that a person deletes a message. Another of their devices may move it at the same time.
  mutating func deleted(_ received: String, by person: Int) {
    messages.deleted(received, by: person)
    for message in messages.messages where message.received == received && message.movedBy == person {
      nodes.delete([], texts: [message.text])
    }
  }

  /// Records that a recipient moves a message below a node of an owner's tree. From then on, its text is like one that the
  /// recipient has written there, but the other correspondents have it as well.
  mutating func moved(
    _ message: SentMessage, _ node: ZDCNode, below parent: ZDCNode, by person: Int, _ device: TestDevice,
    at position: AccessModel.Position, to owner: Int
  ) {
    var text =
      texts[message.text]
      ?? WrittenText(device: device.name, writer: person, position: position, isCreation: true, owners: [])
    text.owners.insert(owner)
    text.correspondents = message.recipients.union([message.sender])
    wrote(message.text, text, into: node)
    placed(node, below: parent)
    messages.moved(message.received, by: person)
    if message.isBurned || message.deletedBy.contains(person) { nodes.delete([], texts: [message.text]) }
  }
}
