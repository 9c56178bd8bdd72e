import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The messages at the end of a random history of several people.
struct PeopleMessageCheck {
  let people: [[TestDevice]]
  let model: PeopleModel
  /// Messages that were sent before the change of the access list on which they depend.
  let early: [String]
  /// The senders of whom each person had messages that waited, because they have declared their keys compromised.
  let heldFrom: [Int: Set<String>]

  private var messages: [SentMessage] { model.messages.messages }

  func run() async throws {
    guard early.isEmpty else { throw TestFailure("\(early) were sent before what they depend on") }
    for (person, devices) in people.enumerated() {
      for device in devices {
        try await checkInbox(of: device, person)
        try await checkMoved(of: device, person)
      }
      try await checkOutbox(of: devices, person)
    }
  }

  private func checkInbox(of device: TestDevice, _ person: Int) async throws {
    let inbox = try await device.received()
    let others = try await people[person][0].received()
    guard inbox == others else { throw TestFailure("\(device.name) has \(inbox) and another device \(others)") }
    let known = Set(messages.filter { $0.recipients.contains(person) }.map(\.received))
    guard known.isSuperset(of: inbox.keys) else { throw TestFailure("\(device.name) has a message to others") }
    for message in messages where message.recipients.contains(person) {
      let fault = fault(of: message, person, inbox[message.received])
      let calls = try await device.messageCalls("new \(message.received)")
      guard fault == nil, calls == 1 || (calls == 0 && inbox[message.received] == nil) else {
        throw TestFailure(
          "\(device.name): \(fault ?? "\(calls) calls") of \(message.text.prefix(12)) \(message.received)")
      }
    }
  }

  /// The gaps that a device reports because messages of the same sender waited, or were declined: their numbers are
  /// missing when a later message comes (PROTOCOL 3.11, "Gaps").
  func explainedGaps(on device: TestDevice, of person: Int) async throws -> [String] {
    var senders = heldFrom[person] ?? []
    for message in messages where message.declinedBy.contains(person) {
      guard try await device.messageCalls("new \(message.received)") == 0 else { continue }
      senders.insert(try people[message.sender][0].localUserID)
    }
    let errors = try await device.syncManager.securityEvents(localUserID: try device.localUserID).map(\.error)
    return errors.filter { $0.code == .messageGap && senders.contains($0.user?.text ?? "") }.map(\.code.rawValue)
  }

  private func fault(of message: SentMessage, _ person: Int, _ found: ArrivedMessage?) -> String? {
    let isDeleted = message.deletedBy.contains(person)
    guard let found else {
      return message.mayBeMissing(for: person) ? nil : "no message"
    }
    let isBurned = message.isBurned && !message.burnDeclinedBy.contains(person)
    if isBurned || isDeleted { return "a deleted or burned message" }
    // A move to a place that is gone is undone.
    if message.movedBy == person, !model.mayBeGone(message.text) { return "a message that was moved" }
    return found.text == message.text ? nil : "another text"
  }

  /// A message that its recipient has moved is in one place: in a tree, or in the inbox.
  private func checkMoved(of device: TestDevice, _ person: Int) async throws {
    let moved = messages.filter { $0.movedBy == person }
    guard !moved.isEmpty else { return }
    let (inbox, lines) = (try await device.received(), try await device.shownLines())
    for message in moved {
      let places = lines.count { $0 == message.text } + (inbox[message.received] == nil ? 0 : 1)
      guard places <= 1 else {
        throw TestFailure("\(device.name) has \(message.text.prefix(12)) in \(places) places")
      }
    }
  }

  /// The sender's devices together have been notified once for each recipient.
  private func checkOutbox(of devices: [TestDevice], _ person: Int) async throws {
    for message in messages where message.sender == person {
      var calls = 0
      for device in devices {
        calls += try await device.messageCalls("sent \(message.id)")
        let isThere = try await device.messageNodes(.outbox).contains { $0.cloudID == message.id }
        guard isThere == !message.isBurned else {
          throw TestFailure("\(device.name)'s outbox: \(message.id) \(isThere)")
        }
      }
      guard calls == message.recipients.count || (message.isBurned && calls < message.recipients.count) else {
        throw TestFailure("\(devices[0].name) was notified \(calls) times of \(message.text.prefix(12))")
      }
    }
  }
}

extension SentMessage {
  fileprivate func mayBeMissing(for person: Int) -> Bool {
    isBurned || deletedBy.contains(person) || declinedBy.contains(person) || movedBy == person
  }
}
