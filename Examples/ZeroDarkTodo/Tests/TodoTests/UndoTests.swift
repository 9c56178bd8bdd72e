import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// Lists and tasks that are created and deleted, and the undo of both.
@Suite(.timeLimit(.minutes(5))) struct UndoTests {
  private func activity(_ device: Device, _ change: String) async throws -> Activity {
    try #require(try await device.account.screen().activity.first { $0.change == change })
  }

  @Test func aDeletedTask_isRestoredInItsPlace_withItsEdits() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.edit("milk") { $0.details = "from the market" }
      let deletion = try await laptop.account.deleteTask(laptop.item("milk").id)
      try await settle(laptop, phone)
      #expect(try await phone.titles() == ["Groceries 0/1"])
      try await laptop.account.undo(#require(deletion))
      try await settle(laptop, phone)
      #expect(try await phone.lines() == ["- milk: from the market [normal]", "- bread [normal]"])
      try await laptop.account.undo(activity(laptop, "changed details").id)
      try await settle(laptop, phone)
      #expect(try await phone.lines() == ["- milk [normal]", "- bread [normal]"])
      try await laptop.account.undo(#require(deletion))
      try await settle(laptop, phone)
      #expect(try await phone.lines() == ["- bread [normal]"])
    }
  }

  @Test func aDeletedList_isRestoredWithItsTasks() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.edit("bread") { $0.isDone = true }
      let taskDeletion = try await laptop.account.deleteTask(laptop.item("milk").id)
      let deletion = try await laptop.account.deleteList(laptop.list("Groceries"))
      try await settle(laptop, phone)
      #expect(try await phone.lists() == [])
      #expect(try await activity(laptop, "deleted").canUndo)
      await #expect(throws: ZDCError.self) { try await laptop.account.undo(#require(taskDeletion)) }
      try await laptop.account.undo(deletion)
      try await laptop.account.undo(#require(taskDeletion))
      try await settle(laptop, phone)
      #expect(try await phone.titles() == ["Groceries 1/2"])
      #expect(try await phone.lines() == ["- milk [normal]", "x bread [normal]"])
      // It has tasks, so it is not deleted by another undo.
      await #expect(throws: ZDCError.self) { try await laptop.account.undo(deletion) }
    }
  }

  @Test func theDeletionOfAListNamesTheTasksThatAreLost() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.addTask("tea", to: laptop.list("Groceries"))
      try await laptop.sync()
      try await phone.account.session.syncManager.syncUntilIdle(localUserID: phone.account.user)  // without its content
      let deletion = try await phone.account.deleteList(phone.list("Groceries"))
      #expect(
        try await phone.account.screen().activity.first?.change == "deleted, with 1 task that an undo cannot restore")
      try await phone.account.undo(deletion)
      try await settle(phone, laptop)
      #expect(try await laptop.lines() == ["- milk [normal]", "- bread [normal]"])
    }
  }

  @Test func aNewTask_andANewList_areUndone_andMadeAgain() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.createList("Garden")
      let creation = try await activity(laptop, "created")
      try await laptop.account.addTask("weed", to: laptop.list("Garden"))
      let addition = try await activity(laptop, "added")
      await #expect(throws: ZDCError.self) { try await laptop.account.undo(creation.id) }
      for id in [addition.id, creation.id] { try await laptop.account.undo(id) }
      try await settle(laptop, phone)
      #expect(try await phone.titles() == ["Groceries 0/2"])
      #expect(try await !activity(laptop, "added").canUndo)
      for id in [creation.id, addition.id] { try await laptop.account.undo(id) }
      try await settle(laptop, phone)
      #expect(try await phone.titles() == ["Garden 0/1", "Groceries 0/2"])
    }
  }

  @Test func onlyTheLatestChangesAreKept_andTheirDeletedTasks() async throws {
    try await withDevices { _, laptop, _ in
      let groceries = try await laptop.list("Groceries")
      try await laptop.account.deleteTask(laptop.item("milk").id)
      for number in 0..<Edit.limit { try await laptop.account.addTask("\(number)", to: groceries) }
      #expect(try await laptop.account.screen().activity.count == Edit.limit)
      let removed = try await laptop.account.session.databaseManager.rwDatabaseConnection.read { transaction in
        try transaction.numberOfKeys(inCollection: Removed.collection)
      }
      #expect(removed == 0)
    }
  }
}
