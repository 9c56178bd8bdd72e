import Foundation
import Testing
import ZDCTreesystem

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Parts of a transaction that are undone while the rest commits.
@Suite struct SavepointTests {
  private struct Failure: Error {}

  @Test func aPartThatThrows_isRolledBack_andTheRestCommits() async throws {
    let device = try await CloudFixture()
    let ran = Locked<[String]>([])
    try await device.write { cloud in
      let transaction = cloud.readWrite
      transaction.setObject(Note(title: "1"), forKey: "before", inCollection: "notes")
      transaction.afterCommit { ran.withLock { $0.append("before") } }
      #expect(throws: Failure.self) {
        try transaction.undoable {
          transaction.setObject(Note(title: "2"), forKey: "before", inCollection: "notes")
          try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["gone"]))
          transaction.afterCommit { ran.withLock { $0.append("inside") } }
          throw Failure()
        }
      }
      // The cached values of the undone part are dropped.
      #expect(cloud.addedOperations().isEmpty)
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["gone"]))
      try transaction.undoable { transaction.afterCommit { ran.withLock { $0.append("kept") } } }
    }
    #expect(ran.withLock { $0 } == ["before", "kept"])
    #expect(try await device.tree() == "home:/gone")
    let note = try await device.zdc.rw.read { try $0.object(Note.self, forKey: "before", inCollection: "notes") }
    #expect(note == Note(title: "1"))
  }

  /// - a nonthrowing call in the part fails
  /// => the part throws, and the transaction continues
  @Test func aPartThatIsPoisoned_throws() async throws {
    let device = try await CloudFixture()
    try await device.write { cloud in
      #expect(throws: ZDCError.self) {
        try cloud.readWrite.undoable { _ = cloud.readWrite.object(forKey: "k", inCollection: "nobody's") }
      }
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["f"]))
    }
    #expect(try await device.tree() == "home:/f")
  }

  /// - a call fails before a part of the transaction begins
  /// => the part does not hide the failure: nothing is committed
  @Test func anEarlierPoison_isNotRolledBackWithThePart() async throws {
    let device = try await CloudFixture()
    await #expect(throws: ZDCError.self) {
      try await device.write { cloud in
        try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["f"]))
        _ = cloud.readWrite.object(forKey: "k", inCollection: "nobody's")
        #expect(throws: ZDCError.self) { try cloud.readWrite.undoable {} }
      }
    }
    #expect(try await device.tree() == "")
  }
}
