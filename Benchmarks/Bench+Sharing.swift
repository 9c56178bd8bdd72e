import Foundation
import ZeroDarkCloud

// Branches of one account that other accounts read and change.

extension Bench {
  // MARK: Sharing and removal

  /// Shares branches of 10, 1,000 and 100,000 nodes, and then removes the member of each. Each time runs from the transaction
  /// until nothing is left to send. Requests and bytes are those of the owner, both ways.
  func share() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let transport = try CountingTransport(server: server.url)
    let owner = try await Person(server, newFolder(), transport)
    let guest = try await Person(server, newFolder())
    try await owner.meet(guest.user)
    let sizes = [("10", 10, max(runs, 3)), ("1k", 1_000, max(runs, 3)), ("100k", scale.manyNodes, 1)]
    var (shares, removals): ([(id: String, run: Run)], [(id: String, run: Run)]) = ([], [])
    var branches: [String: [Branch]] = [:]
    for (name, nodes, count) in sizes {
      let run = try await measured(count, transport) { number in
        let branch = try await Branch("\(name) \(number)", of: owner, nodes: nodes)
        branches[name, default: []].append(branch)
        try await owner.syncUntilIdle()
        return { try await branch.share(with: [guest.user]) }
      }
      shares.append((name, run))
    }
    // After all shares: the owner's client begins to replace the keys of the nodes some seconds after a removal.
    for (name, _, count) in sizes {
      let shared = branches[name] ?? []
      let run = try await measured(count, transport) { number in { try await shared[number].remove(guest.user) } }
      removals.append((name, run))
    }
    for person in [owner, guest] { try await person.device.close() }
    return figures(of: shares, "share") + figures(of: removals, "unshare")
  }

  private func figures(of results: [(id: String, run: Run)], _ name: String) -> [Figure] {
    guard let small = results.first?.run else { return [] }
    return results.flatMap { id, run in
      [
        Figure("\(name)-\(id)", run.times, beside: Yardstick(name: "\(name)-10", value: median(small.times))),
        Figure("\(name)-\(id)-requests", run.requests, beside: Yardstick(name: "\(name)-10", value: small.requests)),
        Figure(
          "\(name)-\(id)-wire", run.bytes / 1_024, beside: Yardstick(name: "\(name)-10", value: small.bytes / 1_024)),
      ]
    }
  }

  /// Shares a branch of ten nodes with 1, 10, 100 and 1,000 users in one transaction, then removes one of them.
  func members() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let transport = try CountingTransport(server: server.url)
    let owner = try await Person(server, newFolder(), transport)
    let users = try await makeUsers(server, count: scale.members)
    for user in users { try await owner.meet(user) }
    note("the owner has met \(users.count) users")
    var figures: [Figure] = []
    for count in [1, 10, 100, users.count] {
      let branch = try await Branch("\(count) members", of: owner, nodes: 10)
      try await owner.syncUntilIdle()
      let members = Array(users.prefix(count))
      let shared = try await measured(1, transport) { _ in { try await branch.share(with: members) } }
      let removed = try await measured(1, transport) { _ in { try await branch.remove(members[0]) } }
      figures += memberFigures(count == users.count ? 1_000 : count, count, shared, removed)
    }
    try await owner.device.close()
    return figures
  }

  private func memberFigures(_ name: Int, _ count: Int, _ shared: Run, _ removed: Run) -> [Figure] {
    let members = Yardstick(name: "members", value: Double(count))
    return [
      Figure("members-\(name)", shared.times, beside: members),
      Figure("members-\(name)-requests", shared.requests, beside: members),
      Figure("removal-\(name)", removed.times, beside: members),
      Figure("removal-\(name)-requests", removed.requests, beside: members),
    ]
  }

  /// Users without a running device.
  private func makeUsers(_ server: ServerProcess, count: Int) async throws -> [String] {
    var users: [String] = []
    for _ in 0..<count {
      let person = try await Person(server, newFolder())
      try await person.device.close()
      users.append(person.user)
    }
    return users
  }

  private struct Run {
    var times: [Double] = []
    /// Of one time.
    var requests = 0.0
    var bytes = 0.0
  }

  /// - Parameter prepare: makes what is measured.
  private func measured(
    _ count: Int, _ transport: CountingTransport, _ prepare: (Int) async throws -> () async throws -> Void
  ) async throws -> Run {
    var run = Run()
    for number in 0..<count {
      let work = try await prepare(number)
      _ = transport.take()
      run.times.append(try await seconds(work).0)
      let counts = transport.take()
      run.requests += Double(counts.requests.count) / Double(count)
      run.bytes += Double(counts.bytes) / Double(count)
    }
    return run
  }

  // MARK: Grafts

  /// Grafts a branch, on a device that reads it for the first time. Beside it, another device of its owner logs in and
  /// reads the same nodes.
  func graft() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let owner = try await Person(server, newFolder())
    let count = scale.graftedNodes
    let branch = try await Branch("branch", of: owner, nodes: count)
    let transport = try CountingTransport(server: server.url)
    let guest = try await Person(server, newFolder(), transport)
    let time = try await join(branch, guest, transport, nodes: count)
    let counts = transport.take()
    let other = try Device(server: server.url, folder: newFolder())
    let (login, _) = try await seconds {
      try await other.loginAndPull(owner.words)
      try await other.app.discovered.wait(until: count + 1, seconds: 600)
    }
    note("\(count) nodes: grafted in \(time) s, read by another device of the owner in \(login) s")
    for device in [owner.device, guest.device, other] { try await device.close() }
    let nodes = Yardstick(name: "nodes", value: Double(count))
    return [
      Figure("graft-100k", time, beside: Yardstick(name: "the owner's next device", value: login)),
      Figure("graft-100k-requests", Double(counts.requests.count), beside: nodes),
      Figure("graft-100k-wire", Double(counts.bytes) / Double(count), beside: nodes),
    ]
  }

  /// Shares the branch with the guest, who grafts it.
  ///
  /// - Returns: The seconds from the graft until all nodes are announced.
  private func join(
    _ branch: Branch, _ guest: Person, _ transport: CountingTransport, nodes: Int
  ) async throws -> Double {
    try await branch.owner.meet(guest.user)
    try await branch.share(with: [guest.user])
    let invite = try await branch.invite()
    try await guest.meet(branch.owner.user)
    _ = transport.take()
    return try await seconds {
      try await branch.graft(invite, by: guest)
      // The branch's root is the graft itself, which the app knows.
      try await guest.device.app.discovered.wait(until: nodes, seconds: 600)
    }.0
  }

  /// Grafts a branch of ten nodes with a long log: one of them was edited again and again.
  func longLog() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let owner = try await Person(server, newFolder())
    let branch = try await Branch("branch", of: owner, nodes: 10)
    let pushed = owner.device.app.pushed.count
    let guest = try await Person(server, newFolder())
    try await owner.meet(guest.user)
    try await branch.share(with: [guest.user])
    for edit in 1...scale.loggedCommits {
      try await owner.device.edit("node 0", below: [branch.name], user: owner.user)
      try await owner.device.app.pushed.wait(until: pushed + edit, seconds: 60)
      if edit % 10_000 == 0 { note("\(edit) commits") }
    }
    let transport = try CountingTransport(server: server.url)
    let member = try await Person(server, newFolder(), transport)
    let time = try await join(branch, member, transport, nodes: 10)
    let commits = Yardstick(name: "commits", value: Double(scale.loggedCommits))
    for person in [owner, guest, member] { try await person.device.close() }
    return [
      Figure("log-100k", time, beside: commits),
      Figure("log-100k-requests", Double(transport.take().requests.count), beside: commits),
    ]
  }

  // MARK: An edit that all members see

  /// Members with one device each. Each time runs from the owner's transaction until one member's callback.
  func memberEdits() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let owner = try await Person(server, newFolder())
    let branch = try await Branch("branch", of: owner, nodes: 1)
    let members = try await makeMembers(of: branch, server, count: scale.onlineMembers)
    note("\(members.count) members are online")
    var times: [Double] = []
    for edit in 1...scale.edits { times += try await edited(branch, members, edit) }
    for person in members + [owner] { try await person.device.close() }
    let yardstick = try await commitsYardstick(server, commits: 3)
    return [("member-edit-p50", 50.0), ("member-edit-p99", 99.0)].map { id, percent in
      Figure(id, percentile(times, percent), beside: yardstick, runs: times.count)
    }
  }

  private func makeMembers(of branch: Branch, _ server: ServerProcess, count: Int) async throws -> [Person] {
    var members: [Person] = []
    for _ in 0..<count {
      let member = try await Person(server, newFolder())
      try await branch.owner.meet(member.user)
      members.append(member)
    }
    try await branch.share(with: members.map(\.user))
    let invite = try await branch.invite()
    for member in members {
      try await branch.graft(invite, by: member)
      try await member.device.app.discovered.wait(until: 1, seconds: 60)
    }
    return members
  }

  private func edited(_ branch: Branch, _ members: [Person], _ edit: Int) async throws -> [Double] {
    let pushed = branch.owner.device.app.pushed.count
    let start = ContinuousClock.now
    try await branch.owner.device.edit("node 0", below: [branch.name], user: branch.owner.user)
    let times = try await withThrowingTaskGroup(of: Double.self) { group in
      for member in members {
        group.addTask {
          try await member.device.app.modified.wait(until: edit, seconds: 60)
          return (ContinuousClock.now - start).seconds * 1_000
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    try await branch.owner.device.app.pushed.wait(until: pushed + 1, seconds: 60)
    return times
  }
}
