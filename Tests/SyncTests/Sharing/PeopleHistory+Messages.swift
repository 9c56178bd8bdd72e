import GRDB
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

// Messages.

extension PeopleHistory {
  mutating func messageStep(_ device: TestDevice, of person: Int) async throws {
    switch pick(0...15) {
    case 0...4: try await send(device, of: person)
    case 5...6: try await invite(device, of: person)
    case 7: try await mark(device)
    case 8: try await deleteMessage(device, of: person)
    case 9...10: try await burn(device)
    case 11: try await block(device, of: person)
    default: try await moveHome()
    }
  }

  private mutating func send(_ device: TestDevice, of person: Int) async throws {
    let others = people.indices.filter { $0 != person }.shuffled(using: &numbers)
    let recipients = Array(others.prefix(pick(1...min(3, others.count))))
    // Content above 983,040 bytes is an attachment.
    let padding = pick(0...9) == 0 ? String(repeating: "x", count: 990_000) : ""
    try await send(token() + padding, device, of: person, to: recipients, after: [])
  }

  /// Shares a branch, and sends a message that depends on it.
  private mutating func invite(_ device: TestDevice, of person: Int) async throws {
    let (guest, operations) = try await share(device, of: person)
    let text = token()
    let uuids = operations.map(\.uuid)
    // The operation must have left the queue when the message is sent.
    device.recorder.on(.sent, text, times: .max) { [early] node, transaction in
      let queued = try String.fetchAll(transaction.database, sql: "SELECT uuid FROM zdc_operation")
      if !Set(uuids).isDisjoint(with: queued) { early.note(text) }
    }
    try await send(text, device, of: person, to: [guest], after: operations)
  }

  private mutating func send(
    _ text: String, _ device: TestDevice, of person: Int, to recipients: [Int], after operations: [ZDCCloudOperation]
  ) async throws {
    let users = recipients.map { people[$0][0] }
    var node: ZDCNode?
    await log.attempt("sends \(text.prefix(12)) to \(users.map(\.name))", device) {
      node = try await device.send(text, toAll: users, after: operations)
    }
    guard let node else { return }
    model.sent(try SentMessage(node, text, from: person, try device.userID, to: recipients))
  }

  private mutating func mark(_ device: TestDevice) async throws {
    guard let message = try await device.messageNodes(.inbox).randomElement(using: &numbers) else { return }
    let isRead = pick(0...2) > 0
    await log.attempt("marks \(message.cloudID) as \(isRead ? "read" : "unread")", device) {
      try await device.write { _, cloud in _ = try cloud.markAsRead(message, isRead) }
    }
  }

  private mutating func deleteMessage(_ device: TestDevice, of person: Int) async throws {
    guard let message = try await device.messageNodes(.inbox).randomElement(using: &numbers) else { return }
    let what = "deletes the message \(message.cloudID)"
    let isDone = await log.attempt(what, device) {
      try await device.write { _, cloud in _ = try cloud.delete(message) }
    }
    if isDone { model.deleted(message.cloudID, by: person) }
  }

  private mutating func burn(_ device: TestDevice) async throws {
    guard let message = try await device.messageNodes(.outbox).randomElement(using: &numbers) else { return }
    let isDone = await log.attempt("burns \(message.cloudID)", device) { try await device.burn(message) }
    if isDone { model.burned(message.cloudID) }
  }

  /// A recipient moves a message into their tree or into a graft. Only one recipient of a message does so: then its text has
  /// one writer.
  private mutating func moveHome() async throws {
    for device in people.devices.shuffled(using: &numbers) {
      guard let person = people.person(of: device),
        let node = try await device.messageNodes(.inbox).randomElement(using: &numbers)
      else { continue }
      let message = model.messages.messages.first { $0.received == node.cloudID }
      guard let message, message.movedBy ?? person == person else { continue }
      return try await moveHome(message, node, device, of: person)
    }
  }

  private mutating func moveHome(
    _ message: SentMessage, _ node: ZDCNode, _ device: TestDevice, of person: Int
  ) async throws {
    guard let parent = try await anyPath(device) else { return }
    let above = try await device.node(parent)
    let position = try AccessModel.position(of: world.server)
    let target = "\(parent)/\(name())"
    let isDone = await log.attempt("moves the message \(node.cloudID) to \(target)", device) {
      try await device.moveMessage(node, to: target)
    }
    guard isDone else { return }
    let (moved, owner) = (try await device.node(target), try people.owner(of: above) ?? person)
    model.moved(message, moved, below: above, by: person, device, at: position, to: owner)
  }

  /// Blocks a sender until later, and deletes their messages in the mailbox.
  private mutating func block(_ device: TestDevice, of person: Int) async throws {
    let sender = people[other(than: person)][0]
    guard pick(0...1) == 0 else {
      await log.attempt("accepts messages of \(sender.name)", device) { try await device.acceptMessages(of: sender) }
      return
    }
    let kept = Set(try await device.received().keys)
    let (user, own) = (try sender.localUserID, try device.localUserID)
    if let number = people.person(of: sender) {
      model.declined(from: number, by: person, except: kept)
    }
    await log.attempt("blocks \(sender.name)", device) {
      try await device.syncManager.declineMessages(fromUserID: user, isBlocking: true, forLocalUserID: own)
    }
  }
}

extension TestDevice {
  fileprivate func moveMessage(_ message: ZDCNode, to target: String) async throws {
    guard let path = ZDCTreesystemPath(target) else { throw TestFailure("not a path: \(target)") }
    try await write { _, cloud in _ = try cloud.moveNode(message, to: path) }
  }
}
