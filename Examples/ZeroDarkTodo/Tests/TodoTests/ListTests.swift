import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit

/// Lists and tasks on two devices, with a real server between them.
@Suite(.timeLimit(.minutes(5))) struct ListTests {
  @Test func tasksOfOneDevice_areShownOnTheOther() async throws {
    try await withDevices { _, laptop, phone in
      #expect(try await phone.lines() == ["- milk [normal]", "- bread [normal]"])
      try await phone.edit("milk") { task in
        task.isDone = true
        task.priority = .high
        task.details = "two bottles"
      }
      #expect(try await phone.titles() == ["Groceries 1/2"])
      try await settle(laptop, phone)
      #expect(try await laptop.lines() == ["x milk: two bottles [high]", "- bread [normal]"])
      #expect(try await laptop.titles() == ["Groceries 1/2"])
    }
  }

  @Test func aNewDevice_showsHowMuchIsDone_beforeItHasATask() async throws {
    try await withDevices { server, laptop, _ in
      try await laptop.edit("milk") { $0.isDone = true }
      try await laptop.sync()
      let words = try await laptop.account.session.localUserManager.accessWords(for: laptop.account.user)
      let folder = try TemporaryFolder()
      let manager = try ZDCManager(
        server: server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
      let desk = Device(manager: manager, account: try await manager.logIn(words: words))
      let session = try manager.session
      try await session.syncManager.syncUntilIdle(localUserID: desk.account.user)
      #expect(try await desk.lines() == ["(not downloaded)", "(not downloaded)"])
      let listID = try await desk.list("Groceries")
      #expect(try await desk.account.screen(list: listID).tasks.allSatisfy { $0.badges == [.needsDownload] })
      let node = try await session.tree(ofLocalUserID: desk.account.user).read { _, cloud in cloud.node(id: listID) }
      let meta = try await session.downloadManager.downloadNodeMeta(try #require(node), components: .metadata)
      let counts = try JSONDecoder().decode(List.Counts.self, from: try #require(meta.metadata))
      #expect(counts == List.Counts(tasks: 2, done: 1))
      try await desk.sync()
      #expect(try await desk.titles() == ["Groceries 1/2"])
      #expect(try await desk.lines() == ["x milk [normal]", "- bread [normal]"])
      try await manager.close()
    }
  }

  @Test func tasksThatBothAdd_areCountedOnBoth() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.addTask("tea", to: laptop.list("Groceries"))
      try await phone.account.addTask("jam", to: phone.list("Groceries"))
      try await phone.edit("jam") { $0.isDone = true }
      try await settle(laptop, phone)
      #expect(try await laptop.titles() == ["Groceries 1/4"])
      #expect(try await laptop.account.screen().activity.allSatisfy { $0.kind == .edit })
    }
  }

  @Test func twoListsOfOneTitle_bothStay() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.createList("Garden")
      try await phone.account.createList("Garden")
      try await phone.account.createList("Garden")
      try await settle(laptop, phone)
      #expect(try await laptop.titles() == ["Garden 0/0", "Garden 2 0/0", "Garden 3 0/0", "Groceries 0/2"])
    }
  }

  @Test func aListThatOneRenames_andTheOtherEdits_keepsBoth() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.renameList(laptop.list("Groceries"), to: "Market")
      try await phone.edit("milk") { $0.isDone = true }
      try await settle(laptop, phone)
      #expect(try await phone.titles() == ["Market 1/2"])
    }
  }

  @Test func aDeletedList_leavesNothingOnEitherDevice() async throws {
    try await withDevices { server, laptop, phone in
      try await laptop.account.attachPhoto(
        Data("photo".utf8), thumbnail: Data("small".utf8), to: laptop.item("milk").id)
      try await settle(laptop, phone)
      #expect(try await phone.account.photos.data(of: phone.item("milk").id) == Data("photo".utf8))
      try await phone.account.deleteList(phone.list("Groceries"))
      try await settle(laptop, phone)
      #expect(try server.nodeCount() == 0)
      for device in [laptop, phone] {
        #expect(try await device.titles() == [])
        let left = try await device.account.session.databaseManager.rwDatabaseConnection.read { transaction in
          try transaction.numberOfKeys(inCollection: Task.collection)
            + transaction.numberOfKeys(inCollection: List.collection)
        }
        #expect(left == 0)
        #expect(device.account.session.diskManager.storageSizeForAllNodeData() == 0)
        #expect(device.account.session.diskManager.storageSizeForAllNodeThumbnails() == 0)
      }
    }
  }

  @Test func aTaskThatOneDeletes_isGoneWithItsPhotoOnBoth() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.attachPhoto(Data("photo".utf8), thumbnail: nil, to: laptop.item("milk").id)
      try await settle(laptop, phone)
      try await phone.account.deleteTask(phone.item("milk").id)
      try await settle(laptop, phone)
      #expect(try await laptop.lines() == ["- bread [normal]"])
      #expect(try await laptop.titles() == ["Groceries 0/1"])
      #expect(laptop.account.session.diskManager.storageSizeForAllNodeData() == 0)
    }
  }

  @Test func aDeletedList_staysWithTheTaskThatTheOtherEdited() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.account.deleteList(laptop.list("Groceries"))
      try await phone.edit("milk") { $0.details = "two bottles" }
      try await laptop.sync()
      try await settle(phone, laptop)
      #expect(try await laptop.lines() == ["- milk: two bottles [normal]"])
      #expect(try await laptop.titles() == ["Groceries 0/1"])
      #expect(try await phone.account.screen().activity.contains { $0.change.hasPrefix("deleted by another device") })
    }
  }

  @Test func aDeletedList_isGone_ifTheOtherOnlyDeletedATask() async throws {
    try await withDevices { server, laptop, phone in
      try await laptop.account.deleteList(laptop.list("Groceries"))
      try await phone.account.deleteTask(phone.item("milk").id)
      try await laptop.sync()
      try await settle(phone, laptop)
      #expect(try await phone.titles() == [])
      #expect(try server.nodeCount() == 0)
    }
  }

  @Test func aTaskMovesToAnotherListWithItsPhoto() async throws {
    try await withDevices { _, laptop, phone in
      let garden = try await laptop.account.createList("Garden")
      let milk = try await laptop.item("milk").id
      try await laptop.account.attachPhoto(Data("photo".utf8), thumbnail: nil, to: milk)
      try await settle(laptop, phone)
      try await laptop.account.moveTask(milk, toList: garden)
      try await settle(laptop, phone)
      #expect(try await phone.titles() == ["Garden 0/1", "Groceries 0/1"])
      #expect(try await phone.account.photos.data(of: phone.item("milk").id) == Data("photo".utf8))
      try await phone.account.deleteList(phone.list("Garden"))
      try await settle(laptop, phone)
      #expect(try await laptop.titles() == ["Groceries 0/1"])
    }
  }

  @Test func tasksAreReorderedOnBoth() async throws {
    try await withDevices { _, laptop, phone in
      for title in ["tea", "jam"] { try await laptop.account.addTask(title, to: laptop.list("Groceries")) }
      try await settle(laptop, phone)
      try await laptop.account.moveTask(laptop.item("jam").id, before: laptop.item("milk").id)
      try await phone.account.moveTask(phone.item("milk").id, before: nil)
      try await settle(laptop, phone)
      #expect(try await phone.lines().map { $0.split(separator: " ")[1] } == ["jam", "bread", "tea", "milk"])
      try await laptop.account.moveTask(laptop.item("tea").id, before: laptop.item("bread").id)
      try await settle(laptop, phone)
      #expect(try await phone.lines().map { $0.split(separator: " ")[1] } == ["jam", "tea", "bread", "milk"])
    }
  }

  @Test func twoAccountsOfOneDevice_haveTheirOwnLists() async throws {
    try await withDevices { _, laptop, _ in
      let second = try await laptop.manager.createAccount().account
      let work = Device(manager: laptop.manager, account: second)
      try await second.createList("Groceries")
      try await second.addTask("report", to: work.list("Groceries"))
      try await work.sync()
      #expect(try await laptop.lines() == ["- milk [normal]", "- bread [normal]"])
      #expect(try await work.lines() == ["- report [normal]"])
      let activity = try await laptop.account.screen().activity
      try await work.edit("report") { $0.isDone = true }
      #expect(try await laptop.account.screen().activity == activity)
      #expect(try await work.account.screen().activity.map(\.change) == ["completed", "added", "created"])
      await #expect(throws: ZDCError.self) { try await laptop.manager.removeAccount(second.user) }
      try await work.sync()
      try await laptop.manager.removeAccount(second.user)
      #expect(try await laptop.manager.accounts().map(\.user) == [laptop.account.user])
      #expect(try await laptop.titles() == ["Groceries 0/2"])
      let left = try await laptop.account.session.databaseManager.rwDatabaseConnection.read { transaction in
        try [List.collection, Task.collection, Edit.collection].map(transaction.numberOfKeys(inCollection:))
      }
      #expect(left == [1, 2, 3])
    }
  }

  @Test func aTaskDoesNotMoveToAnUnknownList() async throws {
    try await withDevices { _, laptop, _ in
      let (milk, bread) = (try await laptop.item("milk").id, try await laptop.item("bread").id)
      for target in ["none", bread] {
        await #expect(throws: ZDCError.self) { try await laptop.account.moveTask(milk, toList: target) }
      }
      #expect(try await laptop.titles() == ["Groceries 0/2"])
    }
  }

  @Test func unreadableContentIsReported_andDoesNotStopTheRest() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.addUnreadableTask(andAlso: "tea")
      #expect(try await phone.manager.sync(phone.account.user) == 1)
      #expect(try await phone.lines().contains("- tea [normal]"))
    }
  }

  /// - a device has the tree, and downloads all content in one batch; one task cannot be read
  /// => it has the others
  @Test func unreadableContent_doesNotStopTheRestOfItsBatch() async throws {
    try await withDevices { server, laptop, _ in
      try await laptop.addUnreadableTask(andAlso: "tea")
      let (words, folder, address) = (
        try await laptop.account.words(), try TemporaryFolder(), server.url.absoluteString
      )
      let before = try ZDCManager(server: address, folder: folder.url, syncsAutomatically: false)
      let user = try await before.logIn(words: words).user
      try await before.session.syncManager.syncUntilIdle(localUserID: user)  // the tree, without its content
      try await before.close()
      let manager = try ZDCManager(server: address, folder: folder.url)
      let desk = Device(manager: manager, account: try manager.account(user))
      var screens = desk.account.screens(list: try await desk.list("Groceries")).makeAsyncIterator()
      while let screen = try await screens.next(), screen.tasks.count(where: { $0.task != nil }) < 3 {}
      let tasks = ["- milk [normal]", "- bread [normal]", "- tea [normal]", "(not downloaded)"]
      #expect(try await desk.lines() == tasks)
      try await manager.close()
    }
  }

  @Test func aClosedManagerThrows_andTheFolderCanBeOpenedAgain() async throws {
    let (server, folder) = (try await TestServer.start(), try TemporaryFolder())
    let manager = try ZDCManager(server: server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
    let user = try await manager.createAccount().account.user
    try await manager.close()
    await #expect { try await manager.accounts() } throws: { ($0 as? ZDCError)?.code == .databaseLocked }
    let again = try ZDCManager(server: server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
    #expect(try await again.accounts().map(\.user) == [user])
    try await again.close()
    try await server.stop()
  }
}

extension Device {
  /// Adds a task whose content no device can read, and another one, and sends both.
  fileprivate func addUnreadableTask(andAlso title: String) async throws {
    let listID = try await list("Groceries")
    try await account.session.tree(ofLocalUserID: account.user).write { _, cloud in
      let path = try #require(cloud.path(forNodeID: listID)).appendingComponent("not a task")
      try account.session.diskManager.importNodeData(
        ZDCDiskImport(cleartextData: Data("not JSON".utf8)), for: cloud.createNode(withPath: path))
    }
    try await account.addTask(title, to: listID)
    try await sync()
  }
}
