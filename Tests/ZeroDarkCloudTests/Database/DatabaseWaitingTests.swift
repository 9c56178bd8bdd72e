import Dispatch
import Foundation
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Blocking calls occupy all threads that tasks run on while asynchronous reads finish. Both must complete
/// nevertheless; otherwise these tests hang.
struct DatabaseWaitingTests {
  /// More callers than tasks have threads.
  private static let callers = ProcessInfo.processInfo.activeProcessorCount + 2

  @Test func blockingReads_waitForNoTask() async throws {
    let fixture = try DatabaseFixture()
    let manager = try fixture.open()
    // One read for each connection of the pool.
    try await Self.block(while: Array(repeating: manager, count: 5)) { _ in
      try manager.roDatabaseConnection.read { _ = try $0.keys(inCollection: "notes") }
    }
    try manager.close()
  }

  @Test func closing_waitsForNoTask() async throws {
    let fixtures = try (0..<Self.callers).map { _ in try DatabaseFixture() }
    let managers = try fixtures.map { try $0.open() }
    try await Self.block(while: managers) { try managers[$0].close() }
  }

  /// All connections are in use, and the read is cancelled while it waits for one.
  @Test func cancelledRead_isNotBegun() async throws {
    let fixture = try DatabaseFixture()
    let manager = try fixture.open()
    let (taken, hold) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<5 {
        group.addTask {
          try await manager.roDatabaseConnection.read { _ in
            taken.continuation.yield()
            hold.wait()
          }
        }
      }
      for await _ in taken.stream.prefix(5) {}
      let late = Task { try await manager.roDatabaseConnection.read { _ in Issue.record("it is begun") } }
      late.cancel()
      for _ in 0..<5 { hold.signal() }
      await #expect(throws: CancellationError.self) { try await late.value }
      try await group.waitForAll()
    }
    try manager.close()
  }

  /// Calls the body on many tasks concurrently, while each of the databases is read. The reads end when the calls wait.
  private static func block(
    while managers: [ZDCDatabaseManager], _ body: @escaping @Sendable (Int) throws -> Void
  ) async throws {
    let gate = DispatchSemaphore(value: 0)
    let (reading, begun) = AsyncStream.makeStream(of: Void.self)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for manager in managers {
        group.addTask {
          try await manager.roDatabaseConnection.read { _ in
            begun.yield()
            gate.wait()
          }
        }
      }
      for await _ in reading.prefix(managers.count) {}
      for caller in 0..<callers { group.addTask { try body(caller) } }
      // If this signal comes too early, the test may pass wrongly. It never fails wrongly.
      Thread.detachNewThread {
        Thread.sleep(forTimeInterval: 0.3)
        for _ in managers { gate.signal() }
      }
      try await group.waitForAll()
    }
  }
}
