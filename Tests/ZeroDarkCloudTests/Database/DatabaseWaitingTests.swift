import Dispatch
import Foundation
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Blocking calls have all the threads that tasks run on, while asynchronous reads come to their end: those end
/// nevertheless, and so do the calls. Otherwise these tests hang.
struct DatabaseWaitingTests {
  /// More than tasks have threads.
  private static let callers = ProcessInfo.processInfo.activeProcessorCount + 2

  @Test func blockingReads_waitForNoTask() async throws {
    let fixture = try DatabaseFixture()
    let manager = try fixture.open()
    // As many as the pool has connections.
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

  /// All connections are taken: it is cancelled while it waits for one.
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
      // Too early, and the test passes though it should not: never the other way round.
      Thread.detachNewThread {
        Thread.sleep(forTimeInterval: 0.3)
        for _ in managers { gate.signal() }
      }
      try await group.waitForAll()
    }
  }
}
