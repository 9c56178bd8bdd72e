import Foundation
import ZDCTreesystem
import ZeroDarkCloud

// Messages and grafts between accounts.

extension Bench {
  // MARK: Messages

  /// A user and their device.
  private struct Person: Sendable {
    var device: Device
    var user: String

    init(_ server: ServerProcess, _ folder: URL, _ transport: CountingTransport? = nil) async throws {
      device = try Device(server: server.url, folder: folder, transport: transport)
      user = try await device.createAccount().user
    }

    /// Fetches, verifies and pins the other user's identity.
    func meet(_ other: Person) async throws -> ZDCUser {
      guard let people = device.zdc.userManager else { throw BenchError("not unlocked") }
      return try await people.fetchUser(id: other.user, for: user)
    }

    func acceptMessages(of other: Person) async throws {
      try await device.zdc.syncManager?.acceptMessages(fromUserID: other.user, forLocalUserID: user)
    }
  }

  /// Sends messages to 1, 10 and 100 users. Each time runs from the transaction until the last recipient's delegate is
  /// called. Requests and bytes are those of the sender, both ways, from the first message to the last.
  func messages() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let transport = try CountingTransport(server: server.url)
    let sender = try await Person(server, newFolder(), transport)
    var (recipients, users): ([Person], [ZDCUser]) = ([], [])
    for _ in 0..<100 {
      let recipient = try await Person(server, newFolder())
      users.append(try await sender.meet(recipient))
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
      let zdc = sender.device.zdc
      try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
        guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: sender.user) else {
          throw BenchError("no such user")
        }
        _ = try cloud.sendMessage(toRecipients: users)
      }
      for (discovered, before) in recipients { try await discovered.wait(until: before + 1) }
    }
    // The next message begins when this one is complete.
    try await sender.device.app.sent.wait(until: pushed + users.count)
    return time * 1_000
  }

  // MARK: Grafts

  /// Grafts a branch, on a device that reads it for the first time. Beside it, another device of its owner logs in and
  /// reads the same nodes.
  func graft() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let owner = try Device(server: server.url, folder: newFolder())
    let (user, words) = try await owner.createAccount()
    let count = scale.graftedNodes
    try await makeBranch(owner, user, nodes: count)
    let transport = try CountingTransport(server: server.url)
    let guest = try await Person(server, newFolder(), transport)
    let invite = try await share(owner, user, with: guest.user)
    guard let people = guest.device.zdc.userManager else { throw BenchError("not unlocked") }
    let inviter = try await people.fetchUser(id: user, for: guest.user)
    _ = transport.take()
    let (time, _) = try await seconds {
      try await accept(invite, from: inviter, guest)
      // The branch's root is the graft itself, which the app knows.
      try await guest.device.app.discovered.wait(until: count, seconds: 600)
    }
    let counts = transport.take()
    let other = try Device(server: server.url, folder: newFolder())
    let (login, _) = try await seconds {
      try await other.loginAndPull(words)
      try await other.app.discovered.wait(until: count + 1, seconds: 600)
    }
    note("\(count) nodes: grafted in \(time) s, read by another device of the owner in \(login) s")
    for device in [owner, guest.device, other] { try await device.close() }
    let nodes = Yardstick(name: "nodes", value: Double(count))
    return [
      Figure("graft-100k", time, beside: Yardstick(name: "the owner's next device", value: login)),
      Figure("graft-100k-requests", Double(counts.requests.count), beside: nodes),
      Figure("graft-100k-wire", Double(counts.bytes) / Double(count), beside: nodes),
    ]
  }

  private static let branch = "branch"

  private func makeBranch(_ device: Device, _ user: String, nodes: Int) async throws {
    try await device.create([Self.branch], user: user)
    for first in stride(from: 0, to: nodes, by: 10_000) {
      let names = (first..<min(first + 10_000, nodes)).map { "node \($0)" }
      try await device.create(names, below: [Self.branch], user: user)
    }
    try await device.app.pushed.wait(until: nodes + 1, seconds: 600)
  }

  private func share(_ device: Device, _ user: String, with guest: String) async throws -> ZDCGraftInvite {
    let zdc = device.zdc
    guard let people = zdc.userManager else { throw BenchError("not unlocked") }
    try await people.fetchUser(id: guest, for: user)
    let path = ZDCTreesystemPath(pathComponents: [Self.branch])
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user), let node = cloud.node(path: path)
      else {
        throw BenchError("no such node")
      }
      _ = cloud.recursiveAddShareItem(ZDCShareItem(permissions: "rw"), forUserID: guest, nodeID: node.uuid)
    }
    _ = try await zdc.syncManager?.syncUntilIdle(localUserID: user)
    let invite = try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
      let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user)
      return cloud?.node(path: path).flatMap { cloud?.graftInvite(for: $0) }
    }
    guard let invite = invite.flatMap(\.self) else { throw BenchError("the branch is not shared") }
    return invite
  }

  private func accept(_ invite: ZDCGraftInvite, from inviter: ZDCUser, _ guest: Person) async throws {
    let zdc = guest.device.zdc
    try await zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: guest.user) else {
        throw BenchError("no such user")
      }
      try cloud.graftNode(
        withLocalPath: ZDCTreesystemPath(pathComponents: [Self.branch]), remoteCloudPath: invite.cloudPath,
        remoteCloudID: invite.cloudID, remoteUser: inviter)
    }
  }
}
