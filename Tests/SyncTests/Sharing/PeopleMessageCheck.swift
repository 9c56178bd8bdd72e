import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The messages at the end of a random history of several people.
struct PeopleMessageCheck {
  let people: [[TestDevice]]
  let messages: [SentMessage]
  /// Messages that were sent before the change of the access list on which they depend.
  let early: [String]

  func run() async throws {
    guard early.isEmpty else { throw TestFailure("\(early) were sent before what they depend on") }
    for (person, devices) in people.enumerated() {
      for device in devices { try await checkInbox(of: device, person) }
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

  private func fault(of message: SentMessage, _ person: Int, _ found: ArrivedMessage?) -> String? {
    let isDeleted = message.deletedBy.contains(person)
    guard let found else {
      return message.isBurned || isDeleted || message.declinedBy.contains(person) ? nil : "no message"
    }
    let isBurned = message.isBurned && !message.burnDeclinedBy.contains(person)
    if isBurned || isDeleted { return "a deleted or burned message" }
    return found.text == message.text ? nil : "another text"
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
