import Foundation
import Synchronization
import ZeroDarkCloud

// Many devices on one server at the same time.

/// The two devices of an account.
struct DevicePair: Sendable {
  var a: Device
  var b: Device
  var user: String

  func close() async throws {
    try await a.close()
    try await b.close()
  }
}

extension Bench {
  // MARK: 100 accounts × 2 devices

  func manyDevices() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let pairs = try await makePairs(server, count: scale.accounts)
    note("\(pairs.count * 2) devices are online")
    let times = try await editTimes(pairs, edits: scale.edits, round: 0)
    for pair in pairs { try await pair.close() }
    let yardstick = try await commitsYardstick(server, commits: 3)
    return [("devices-200-p50", 50.0), ("devices-200", 99.0)].map { id, percent in
      Figure(id, percentile(times, percent), beside: yardstick, runs: times.count)
    }
  }

  /// Edits one note per device, by default once a second. Each time runs from the transaction until the callback on the account's
  /// other device. An edit that does not arrive ends the measurement with an error.
  ///
  /// - Parameter round: how often these pairs were measured before.
  func editTimes(_ pairs: [DevicePair], edits: Int, round: Int) async throws -> [Double] {
    let done = round * edits
    let times = try await withThrowingTaskGroup(of: [Double].self) { group in
      for (index, pair) in pairs.enumerated() {
        // Spread over the time between two edits: 200 devices in lockstep are not realistic.
        let offset = Double(index * scale.editSeconds) / Double(pairs.count)
        group.addTask { try await edit("a", pair.a, until: pair.b, pair.user, done..<done + edits, offset) }
        group.addTask { try await edit("b", pair.b, until: pair.a, pair.user, done..<done + edits, offset / 2) }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    guard times.count == pairs.count * 2 * edits else { throw BenchError("edits were lost") }
    return times
  }

  func makePairs(_ server: ServerProcess, count: Int) async throws -> [DevicePair] {
    var pairs: [DevicePair] = []
    for _ in 0..<count {
      let a = try Device(server: server.url, folder: newFolder())
      let b = try Device(server: server.url, folder: newFolder())
      let (user, words) = try await a.createAccount()
      try await a.create(["a", "b"], user: user)
      try await a.app.pushed.wait(until: 2)
      try await b.loginAndPull(words)
      try await b.app.discovered.wait(until: 2)
      let pair = DevicePair(a: a, b: b, user: user)
      try await warmUp(pair)
      pairs.append(pair)
    }
    return pairs
  }

  /// Makes one edit on each device before time is taken. The first edit of a device is not typical, and two hundred
  /// devices that start simultaneously have a separate row.
  private func warmUp(_ pair: DevicePair) async throws {
    try await pair.a.edit("a", user: pair.user)
    try await pair.b.app.modified.wait(until: 1)
    try await pair.a.app.pushed.wait(until: 3)
    try await pair.b.edit("b", user: pair.user)
    try await pair.a.app.modified.wait(until: 1)
    try await pair.b.app.pushed.wait(until: 1)
  }

  private func edit(
    _ name: String, _ device: Device, until other: Device, _ user: String, _ edits: Range<Int>, _ offset: Double
  ) async throws -> [Double] {
    let begin = ContinuousClock.now + .seconds(offset)
    var times: [Double] = []
    for index in edits {
      let pause = Duration.seconds((index - edits.lowerBound) * scale.editSeconds)
      try await Task.sleep(until: begin + pause, clock: .continuous)
      let (time, _) = try await seconds {
        try await device.edit(name, user: user)
        try await other.app.modified.wait(until: index + 2, seconds: 60)
      }
      times.append(time * 1_000)
      // Wait, so that the next edit is a separate one and not part of this one.
      try await device.app.pushed.wait(until: index + (name == "a" ? 4 : 2), seconds: 60)
    }
    return times
  }

  // MARK: 1,000 zones

  /// One device for each of many accounts: no commit waits for another one of its zone.
  ///
  /// A script that measures what the server's processes use reads the two remarks.
  func manyZones() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let devices = try await makeSingles(server.url, count: scale.zones)
    note("zones: begin")
    let (time, _) = try await seconds { try await commitAlone(devices, count: scale.zoneCommits) }
    note("zones: end")
    for (device, _) in devices { try await device.close() }
    let yardstick = Yardstick(name: "zones", value: Double(devices.count))
    return [Figure("zones-1000", Double(devices.count * scale.zoneCommits) / time, beside: yardstick)]
  }

  private func makeSingles(_ server: URL, count: Int) async throws -> [(device: Device, user: String)] {
    try await withThrowingTaskGroup(of: (Device, String).self) { group in
      var devices: [(device: Device, user: String)] = []
      for index in 0..<count {
        if index >= 4, let next = try await group.next() { devices.append(next) }
        group.addTask {
          let device = try Device(server: server, folder: newFolder())
          let user = try await device.createAccount().user
          try await device.create(["first"], user: user)
          try await device.app.pushed.wait(until: 1)
          return (device, user)
        }
      }
      return try await group.reduce(into: devices) { $0.append($1) }
    }
  }

  /// Each device commits one node after the other, as fast as it can.
  private func commitAlone(_ devices: [(device: Device, user: String)], count: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (device, user) in devices {
        group.addTask {
          for index in 1...count {
            try await device.create(["node \(index)"], user: user)
            try await device.app.pushed.wait(until: index + 1, seconds: 300)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  // MARK: Ten devices, one zone

  func contention() async throws -> [Figure] {
    let server = try await ServerProcess(folder: newFolder())
    let first = try Device(server: server.url, folder: newFolder())
    let (user, words) = try await first.createAccount()
    var devices = [first]
    for _ in 1..<10 {
      let device = try Device(server: server.url, folder: newFolder())
      try await device.loginAndPull(words)
      devices.append(device)
    }
    let before = try await server.commitCount()
    let (time, slowest) = try await seconds { try await contend(devices, user) }
    let commits = try await server.commitCount() - before
    let total = scale.contended * devices.count
    for device in devices {
      try await device.app.discovered.wait(until: total - scale.contended, seconds: 120)
      try await device.close()
    }
    note("when the first device was done, the last had \(slowest) of \(scale.contended)")
    guard slowest > 0 else { throw BenchError("a device made no progress while the others did") }
    return [
      Figure(
        "contend-10", commits / time, beside: Yardstick(name: "nodes", value: Double(total) / time))
    ]
  }

  /// - Returns: the progress of the slowest device when the fastest finished.
  private func contend(_ devices: [Device], _ user: String) async throws -> Int {
    let count = scale.contended
    return try await withThrowingTaskGroup(of: Void.self) { group in
      for (number, device) in devices.enumerated() {
        group.addTask {
          for index in 1...count {
            try await device.create(["device \(number), node \(index)"], user: user)
            try await device.app.pushed.wait(until: index, seconds: 120)
          }
        }
      }
      try await group.next()
      let slowest = devices.map(\.app.pushed.count).min() ?? 0
      try await group.waitForAll()
      return slowest
    }
  }
}
