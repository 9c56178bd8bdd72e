import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import TodoKit
@testable import zdc_todo

/// Content of another program: a member of a shared list can write anything.
@Suite(.timeLimit(.minutes(5))) struct ForeignContentTests {
  @Test func impossibleNumbersOfTasks_areLimited() async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      let listID = try await people.share()
      for (numbers, limited) in [
        ((1, Int.max), (1, 1)), ((.max, .max), (1_000_000, 1_000_000)), ((.min, .min), (0, 0)),
      ] {
        let list = List(
          created: Date(timeIntervalSinceReferenceDate: 1e300), counts: List.Counts(tasks: numbers.0, done: numbers.1))
        try await bob.account.tree.write { transaction, cloud in
          transaction.setObject(list, forKey: listID, inCollection: List.collection)
          cloud.queueDataUpload(forNodeID: listID, withChangeset: nil)
        }
        for device in [bob, alice] {
          try await device.sync()
          let screen = try await device.account.screen(list: device.list("Groceries"))
          #expect(screen.lists.map(\.counts) == [List.Counts(tasks: limited.0, done: limited.1)])
          let user = device.account.user
          for place in [Place.lists, .list(screen.lists[0].id)] {
            let page = Page(user: user, accounts: [user], place: place, screen: screen)
            #expect(page.document.text.contains("Groceries"))
          }
        }
        #expect(try await alice.lists().first?.created.timeIntervalSince1970 == 7_258_118_400)
      }
    }
  }

  @Test(arguments: ["\u{10FFFF}", String(repeating: "z", count: 100_000)])
  func anImpossibleRankOrDate_isReplaced(_ rank: String) async throws {
    try await withPeople { people in
      let (alice, bob) = (people.alice, people.bob)
      try await people.share()
      let milk = try await bob.item("milk").id
      try await bob.account.tree.write { transaction, cloud in
        var task = try cloud.task(milk)
        (task.created, task.rank) = (Date(timeIntervalSinceReferenceDate: 1e300), rank)
        transaction.setObject(task, forKey: milk, inCollection: Task.collection)
        cloud.queueDataUpload(forNodeID: milk, withChangeset: nil)
      }
      for device in [bob, alice] { try await device.sync() }
      let item = try await alice.item("milk")
      #expect(TodoText(try #require(item.task), list: nil).line == "2200-01-01 milk")
      #expect(try TaskJSON.numbered([item]).map { try Output.json($0) }.first?.contains("2200-01-01") == true)
      try await alice.account.addTask("tea", to: alice.list("Groceries"))
      #expect(try await alice.lines().last == "- tea [normal]")
      #expect(try await alice.item("tea").task?.rank.count ?? .max < 64)
    }
  }

  @Test func contentThatIsTooLarge_isNotDownloaded_andReported() async throws {
    try await withDevices { _, laptop, phone in
      let large = String(repeating: "x", count: 2 << 20)
      try await laptop.account.addTask("flour", to: laptop.list("Groceries"))
      try await laptop.writeForeign("flour", details: large)
      try await laptop.sync()
      #expect(try await phone.manager.sync(phone.account.user) == 1)
      #expect(try await phone.lines() == ["- milk [normal]", "- bread [normal]", "(not downloaded)"])
      let (user, list) = (phone.account.user, try await phone.list("Groceries"))
      let page = Page(
        user: user, accounts: [user], place: .list(list), screen: try await phone.account.screen(list: list))
      #expect(page.document.text.contains("This task cannot be read."))
      try await laptop.edit("flour") { $0.details = "" }
      try await settle(laptop, phone)
      #expect(try await phone.manager.sync(user) == 0)
      #expect(try await phone.lines().last == "- flour [normal]")
    }
  }

  /// - a user gives a task more text than other devices download
  /// => it is refused: the next edit of another device, which cannot see it, would replace it without a conflict
  @Test func textThatTheOtherDevicesWouldNotDownload_isRefused() async throws {
    try await withDevices { _, laptop, phone in
      let list = try await laptop.list("Groceries")
      // Each of these characters takes six bytes in JSON.
      for details in [String(repeating: "x", count: 1 << 20), String(repeating: "\u{1}", count: 200_000)] {
        await #expect(throws: ZDCError.self) { try await laptop.edit("milk") { $0.details = details } }
        await #expect(throws: ZDCError.self) { try await laptop.account.addTask("tea", details: details, to: list) }
      }
      try await laptop.edit("milk") { $0.details = String(repeating: "x", count: 1_000_000) }
      try await settle(laptop, phone)
      try await phone.edit("milk") { $0.isDone = true }
      try await settle(phone, laptop)
      #expect(try await laptop.item("milk").task?.details.count == 1_000_000)
    }
  }

  /// - two devices edit a task, and the first version is too large
  /// => it cannot be merged, so the other one replaces it
  @Test func contentThatIsTooLargeToMerge_isReplaced() async throws {
    try await withDevices { _, laptop, phone in
      try await laptop.writeForeign("milk", details: String(repeating: "x", count: 2 << 20))
      try await phone.edit("milk") { $0.isDone = true }
      try await laptop.sync()
      try await settle(phone, laptop)
      #expect(try await laptop.lines().first == "x milk [normal]")
    }
  }

  /// - a new device adds a task to a list before it has downloaded the others, of which one is done
  /// => the list's number is right once they are there
  @Test func aListThatIsChangedBeforeItsTasksArrive_isCountedAgain() async throws {
    try await withDevices { server, laptop, _ in
      try await laptop.edit("milk") { $0.isDone = true }
      try await laptop.sync()
      let folder = try TemporaryFolder()
      let manager = try ZDCManager(
        server: server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
      let desk = Device(manager: manager, account: try await manager.logIn(words: laptop.account.words()))
      try await desk.account.session.syncManager.syncUntilIdle(localUserID: desk.account.user)  // without its content
      try await desk.account.addTask("tea", to: desk.list("Groceries"))
      try await settle(desk, laptop)
      #expect(try await laptop.titles() == ["Groceries 1/3"])
      try await manager.close()
    }
  }
}
