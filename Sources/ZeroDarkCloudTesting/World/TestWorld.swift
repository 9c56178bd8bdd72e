internal import Foundation
internal import Synchronization
internal import ZeroDarkCloud

/// A server, a clock and the devices of one or more accounts, for the duration of a test.
///
/// At the end it checks invariants: every queue is empty, no device encountered a security error, and every device
/// shows exactly what a fresh device gets from the server. A test must declare any exceptions beforehand.
///
/// ```swift
/// try await TestWorld.run { world in
///   let a = try await world.device("A")
///   let b = try await world.device("B")        // same account
///   try await a.create("/hello", "world")
///   try await a.sync()
///   try await b.sync()
///   #expect(try await b.tree() == a.tree())
/// }
/// ```
public final class TestWorld: Sendable {
  private struct State {
    var devices: [(device: TestDevice, account: String)] = []
    var words: [String: [String]] = [:]
    var mayWait: Set<String> = []
    var expectedErrors: [String: [String]] = [:]
    var isCompared = true
  }

  /// The server that all devices of the world reach.
  public let server: TestServer
  /// The clock that the server and all devices of the world share.
  public let clock: ManualClock
  private let state = Mutex(State())

  private init(server: TestServer, clock: ManualClock) {
    self.server = server
    self.clock = clock
  }

  /// Creates a world, runs the test in it, and checks it at the end.
  ///
  /// ```swift
  /// try await TestWorld.run(quotaBytes: 1 << 20) { world in
  ///   let a = try await world.device("A")
  ///   world.mayWait(a)  // what follows does not fit
  ///   try await a.create("/film", TestContent(data: Data(count: 2 << 20)))
  ///   try await a.sync()
  ///   #expect(try await a.explain("/film")?.operations.last?.reason == .overQuota)
  /// }
  /// ```
  ///
  /// - Parameter quotaBytes: Maximum size of sealed content per account on the server, in bytes; 0 for unlimited.
  /// - Throws: ``TestFailure`` with all failed checks, or any error of the test.
  public static func run(
    quotaBytes: UInt64 = 0, _ body: @Sendable (TestWorld) async throws -> Void
  ) async throws {
    let clock = ManualClock()
    let server = try await TestServer.start(clock: clock, quotaBytes: quotaBytes)
    let world = TestWorld(server: server, clock: clock)
    do {
      try await body(world)
      try await world.check()
    } catch {
      try await world.end()
      throw error
    }
    try await world.end()
  }

  // MARK: Devices

  /// Creates a device. The first device of an account creates the account, others log in with its words.
  ///
  /// ```swift
  /// let laptop = try await world.device("laptop")
  /// let phone = try await world.device("phone")  // the same account
  /// let other = try await world.device("other", account: "bob")
  /// ```
  public func device(_ name: String, account: String = "alice") async throws -> TestDevice {
    let device = try await TestDevice(name, server: server, clock: clock)
    if let words = words(of: account) {
      try await device.login(words: words)
    } else {
      let words = try await device.createAccount()
      state.withLock { $0.words[account] = words }
    }
    state.withLock { $0.devices.append((device, account)) }
    return device
  }

  /// Returns the words of an account; nil if no device has created it.
  public func words(of account: String = "alice") -> [String]? { state.withLock { $0.words[account] } }

  /// Notes the new words of an account whose access key a test has changed.
  public func setWords(_ words: [String], of account: String = "alice") {
    state.withLock { $0.words[account] = words }
  }

  /// Syncs the devices round after round, including content, until a round changes nothing.
  ///
  /// ```swift
  /// try await a.create("/groceries", "milk")
  /// try await b.create("/chores", "dishes")
  /// try await world.settle(a, b)
  /// #expect(try await a.tree() == b.tree())
  /// ```
  public func settle(_ devices: TestDevice...) async throws {
    try await Self.settle(devices)
  }

  /// Syncs devices that belong to no world, round after round, until a round changes nothing.
  package static func settle(_ devices: [TestDevice]) async throws {
    for _ in 0..<20 {
      var isQuiet = true
      for device in devices {
        let summary = try await device.sync()
        let downloaded = try await device.download()
        isQuiet = isQuiet && summary.pulled.commits == 0 && summary.pushed.commits == 0 && downloaded == 0
      }
      if isQuiet { return }
    }
    throw TestFailure("the devices do not come to rest")
  }

  // MARK: Allowed leftovers

  /// Allows the device's queue to be non-empty, and excludes its tree from the comparison.
  public func mayWait(_ device: TestDevice) { state.withLock { _ = $0.mayWait.insert(device.name) } }

  /// Declares the security errors that the test expects on a device.
  ///
  /// They are compared in order, at the end of the test.
  ///
  /// ```swift
  /// world.expectsSecurityErrors(["ownCommitMissing"], on: a)  // the server was restored from a backup
  /// ```
  public func expectsSecurityErrors(_ codes: [String], on device: TestDevice) {
    state.withLock { $0.expectedErrors[device.name] = codes }
  }

  /// Skips the comparison with the server at the end, for tests that leave it stopped.
  package func skipsComparison() { state.withLock { $0.isCompared = false } }

  // MARK: Final checks

  /// Runs the checks that ``run(quotaBytes:_:)`` performs at the end.
  public func check() async throws {
    var failures: [String] = []
    let (devices, isCompared) = state.withLock { ($0.devices, $0.isCompared) }
    for (device, _) in devices { failures += try await quietFailures(device) }
    if isCompared, failures.isEmpty {
      for account in Set(devices.map(\.account)).sorted() {
        failures += try await treeFailures(devices.filter { $0.account == account }.map(\.device), account)
      }
    }
    guard failures.isEmpty else { throw TestFailure(failures.joined(separator: "\n")) }
  }

  private func quietFailures(_ device: TestDevice) async throws -> [String] {
    device.network.restoreNetwork()
    var failures: [String] = []
    let (mayWait, expected) = state.withLock {
      ($0.mayWait.contains(device.name), $0.expectedErrors[device.name] ?? [])
    }
    if !mayWait, try await device.queueCount() > 0 {
      failures.append("\(device.name)'s queue is not empty:\n\(try await device.queue())")
    }
    let met = try await device.securityErrors()
    if met != expected { failures.append("\(device.name) met security errors: \(met), expected \(expected)") }
    return failures
  }

  private func treeFailures(_ devices: [TestDevice], _ account: String) async throws -> [String] {
    guard let words = words(of: account) else { return [] }
    let (mayWait, expected) = state.withLock { state in
      (state.mayWait, Set(devices.flatMap { state.expectedErrors[$0.name] ?? [] }))
    }
    let witness = try await TestDevice("witness", server: server, clock: clock)
    let user = try await witness.login(words: words)
    try await witness.pull()
    try await witness.download()
    let honest = try await witness.tree()
    var failures: [String] = []
    for device in devices where !mayWait.contains(device.name) {
      // The server may have been restarted since the device's last request.
      await device.network.renewConnections()
      try await device.pull(user: user)
      try await device.download(user: user)
      let tree = try await device.tree(user: user)
      if tree != honest { failures.append("\(device.name) shows\n\(tree)\nand the server has\n\(honest)") }
    }
    // What the account's devices refuse may still be on the server, for each new device to refuse.
    let errors = try await witness.securityErrors().filter { !expected.contains($0) }
    if !errors.isEmpty { failures.append("a fresh device met security errors: \(errors)") }
    try await witness.close()
    return failures
  }

  /// Closes all devices and the server, even if the test was cancelled or closing one of them fails. A remaining server
  /// or engine would keep the process alive.
  private func end() async throws {
    let devices = state.withLock { $0.devices.map(\.device) }
    try await Task { [server] in
      var failure: (any Error)?
      for device in devices { do { try await device.close() } catch { failure = failure ?? error } }
      try await server.stop()
      if let failure { throw failure }
    }.value
  }
}
