import Foundation
import ZDCTreesystem
import ZeroDarkCloud

// Messages between accounts.

extension Bench {
  /// Sends messages to 1, 10 and 100 users. Each time runs from the transaction until the last recipient's delegate is
  /// called. Requests and bytes are those of the sender, both ways, from the first message to the last.
  func messages() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let transport = try CountingTransport(server: server.url)
    let sender = try await Person(server, newFolder(), transport)
    var (recipients, users): ([Person], [ZDCUser]) = ([], [])
    for _ in 0..<100 {
      let recipient = try await Person(server, newFolder())
      users.append(try await sender.meet(recipient.user))
      try await recipient.acceptMessages(of: sender)
      recipients.append(recipient)
    }
    note("\(recipients.count) recipients are online")
    let yardstick = try await commitsYardstick(server, commits: 3)
    var figures: [Figure] = []
    for count in [1, 10, 100] {
      try await send(from: sender, to: Array(users.prefix(count)), recipients)
      _ = transport.take()
      var times: [Double] = []
      for _ in 0..<max(samples / count, 5) {
        times.append(try await send(from: sender, to: Array(users.prefix(count)), recipients))
      }
      let counts = transport.take()
      let each = Yardstick(name: "recipients of a message", value: Double(count))
      figures += [
        Figure("message-\(count)", times, beside: yardstick),
        Figure("message-\(count)-requests", Double(counts.requests.count) / Double(times.count), beside: each),
        Figure("message-\(count)-wire", Double(counts.bytes) / Double(times.count) / 1_024, beside: each),
      ]
    }
    for person in recipients + [sender] { try await person.device.close() }
    return figures
  }

  /// - Returns: The milliseconds until all recipients have announced the message.
  @discardableResult
  private func send(from sender: Person, to users: [ZDCUser], _ people: [Person]) async throws -> Double {
    let recipients = people.prefix(users.count).map { ($0.device.app.discovered, $0.device.app.discovered.count) }
    let pushed = sender.device.app.sent.count
    let (time, _) = try await seconds {
      try await sender.transaction { _ = try $0.sendMessage(toRecipients: users) }
      for (discovered, before) in recipients { try await discovered.wait(until: before + 1) }
    }
    // The next message begins when this one is complete.
    try await sender.device.app.sent.wait(until: pushed + users.count)
    return time * 1_000
  }
}
