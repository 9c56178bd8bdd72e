import Foundation
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Two managers on one file simulate two processes: they share nothing but the file.
@Suite struct DatabaseSharingTests {
  let fixture: DatabaseFixture
  let mine: ZDCDatabaseManager
  let theirs: ZDCDatabaseManager

  init() throws {
    fixture = try DatabaseFixture()
    mine = try fixture.open()
    theirs = try fixture.open()
  }

  @Test func concurrentWrites_loseNothing() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (name, manager) in [("mine", mine), ("theirs", theirs)] {
        for number in 0..<50 {
          group.addTask {
            try await manager.rwDatabaseConnection.write {
              $0.setObject(number, forKey: "\(name)\(number)", inCollection: "numbers")
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await theirs.roDatabaseConnection.read { try $0.numberOfKeys(inCollection: "numbers") } == 100)
  }

  /// Read, add one, write: each block sees what the other process committed before.
  @Test func countersOfTwoProcesses_addUp() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for manager in [mine, theirs] {
        group.addTask {
          for _ in 0..<25 {
            try await manager.rwDatabaseConnection.write { transaction in
              let count = try transaction.object(Int.self, forKey: "count", inCollection: "numbers") ?? 0
              transaction.setObject(count + 1, forKey: "count", inCollection: "numbers")
            }
          }
        }
      }
      try await group.waitForAll()
    }
    let count = try await mine.roDatabaseConnection.read {
      try $0.object(Int.self, forKey: "count", inCollection: "numbers")
    }
    #expect(count == 50)
  }

  // MARK: The watcher

  @Test func watcher_noticesTheOthersCommit_andNotItsOwn() async throws {
    #expect(try await mine.changeWatcher.poll() == false)
    try await mine.rwDatabaseConnection.write { $0.setObject(1, forKey: "1", inCollection: "numbers") }
    #expect(try await mine.changeWatcher.poll() == false)
    var hints = mine.context.changes.hints(.queue(localUser: 1)).makeAsyncIterator()
    try await theirs.rwDatabaseConnection.write { $0.setObject(2, forKey: "2", inCollection: "numbers") }
    #expect(try await mine.changeWatcher.poll())
    #expect(await hints.next() != nil)
    #expect(try await mine.changeWatcher.poll() == false)
    // Notifying its own observers was not a write, so the other process sees no change.
    #expect(try await theirs.changeWatcher.poll() == false)
  }

  @Test func commitOfAnotherProcess_refreshesObservations() async throws {
    var values = mine.uiDatabaseConnection.observe { try $0.keys(inCollection: "numbers") }.makeAsyncIterator()
    #expect(try await values.next() == [])
    // No engine runs, so the observation polls on its own.
    try await theirs.rwDatabaseConnection.write { $0.setObject(2, forKey: "2", inCollection: "numbers") }
    #expect(try await values.next() == ["2"])
  }

  @Test func runningWatcher_reportsACommit_andEndsWhenCancelled() async throws {
    _ = try await mine.changeWatcher.poll()
    var hints = mine.context.changes.hints().makeAsyncIterator()
    let watcher = ChangeWatcher(pool: mine.rwDatabaseConnection.pool, context: mine.context, interval: .milliseconds(1))
    _ = try await watcher.poll()
    let running = Task { await watcher.run() }
    try await theirs.rwDatabaseConnection.write { $0.setObject(2, forKey: "2", inCollection: "numbers") }
    #expect(await hints.next() != nil)
    running.cancel()
    await running.value
  }

  // MARK: The lease

  @Test func lease_oneHolder_passedOnWhenReleased() throws {
    #expect(try mine.engineLease.tryAcquire())
    #expect(try mine.engineLease.tryAcquire())
    #expect(try theirs.engineLease.tryAcquire() == false)
    mine.engineLease.release()
    // The lease was acquired twice, so only the second call releases it.
    #expect(mine.engineLease.isHeld)
    mine.engineLease.release()
    #expect(!mine.engineLease.isHeld)
    #expect(try theirs.engineLease.tryAcquire())
    #expect(try mine.engineLease.tryAcquire() == false)
  }

  @Test func lease_reportsWhetherAnotherProcessHeldItInBetween() throws {
    #expect(try mine.engineLease.tryAcquire())
    let first = mine.engineLease.generation
    mine.engineLease.release()
    #expect(try mine.engineLease.tryAcquire())
    #expect(mine.engineLease.generation == first)
    mine.engineLease.release()
    #expect(try theirs.engineLease.tryAcquire())
    theirs.engineLease.release()
    #expect(try mine.engineLease.tryAcquire())
    #expect(mine.engineLease.generation > first)
  }

  @Test func lease_isGivenBackByClosing() throws {
    #expect(try mine.engineLease.tryAcquire())
    try mine.close()
    #expect(try theirs.engineLease.tryAcquire())
  }

  /// The child is killed while it holds the lease.
  @Test func lease_isGivenBackWhenItsHolderIsKilled() async throws {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-lease-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: file.appendingPathExtension("lease")) }
    await #expect(processExitsWith: .signal(SIGKILL)) { [path = file.path as String] in
      let lease = EngineLease(databasePath: URL(fileURLWithPath: path))
      try #require(try lease.tryAcquire())
      try #require(try EngineLease(databasePath: URL(fileURLWithPath: path)).tryAcquire() == false)
      kill(getpid(), SIGKILL)
    }
    #expect(try EngineLease(databasePath: file).tryAcquire())
  }

  @Test func lease_isGivenBackWhenItsHolderIsGone() throws {
    do {
      let lease = EngineLease(databasePath: fixture.path)
      #expect(try lease.tryAcquire())
      #expect(try mine.engineLease.tryAcquire() == false)
    }
    #expect(try mine.engineLease.tryAcquire())
  }
}
