import Testing
import TodoKit
import ZeroDarkCloud

@testable import zdc_todo

/// The events that an open page gets after a change.
@Suite(.timeLimit(.minutes(5))) struct LiveTests {
  private func page(_ tasks: KeyValuePairs<String, String>) -> HTML {
    let rows: [HTML] = tasks.map { HTML(row: "t-\($0.key)", "<li id=\"t-\($0.key)\">\($0.value)</li>") }
    return "<h1>Käse</h1>\n<ul>\(rows)</ul>"
  }

  @Test func rowThatThePageHas_isOnlyNamed() {
    let first = page(["1": "milk", "2": "<br>", "3": "jam"])
    let second = page(["2": "<br>", "1": "soy milk", "4": "tea"])
    #expect(second.text(without: [:]) == second.text)
    #expect(
      second.text(without: first.rowVersions)
        == "<h1>Käse</h1>\n<ul><li id=\"t-2\" data-same></li><li id=\"t-1\">soy milk</li><li id=\"t-4\">tea</li></ul>")
    #expect(first.text(without: first.rowVersions).matches(of: /data-same/).count == 3)
    #expect(first.version != second.version && first.version == page(["1": "milk", "2": "<br>", "3": "jam"]).version)
  }

  @Test func tickIsNews_whereThePageHasNotShownIt() async throws {
    try await withDevices { _, laptop, phone in
      let (mine, theirs) = (try await laptop.list("Groceries"), try await phone.list("Groceries"))
      let screen = { (device: Device, list: String) in try await device.account.screen(list: list, withActivity: false)
      }
      let (before, theirsBefore) = (try await screen(laptop, mine), try await screen(phone, theirs))
      try await laptop.edit("milk") { $0.isDone = true }
      let ticked = try await screen(laptop, mine)
      #expect(ticked != before && !ticked.hasNews(since: before))
      try await settle(laptop, phone)
      #expect(try await !screen(laptop, mine).hasNews(since: ticked))
      #expect(try await screen(phone, theirs).hasNews(since: theirsBefore))
      try await laptop.edit("milk") { $0.title = "soy milk" }
      #expect(try await screen(laptop, mine).hasNews(since: ticked))
    }
  }

  /// - a browser has the document, and nothing happens
  /// => the screen is read once, and nothing is sent
  @Test func openPage_isReadAgainOnlyAfterChanges() async throws {
    try await withDevices { _, laptop, _ in
      let (account, list) = (laptop.account, try await laptop.list("Groceries"))
      var sync = try await account.session.syncManager.syncState(forLocalUserID: account.user)
      let frame = Page(user: account.user, accounts: [account.user], place: .list(list), sync: sync)
      var page = frame
      page.screen = try await account.screen(list: list, withActivity: false)
      let content = LiveContent(frame, seen: page.content.version)
      let unread = try await content.update(account)
      #expect(unread == nil)
      let isFirst = try await content.read(account)
      let seen = try await content.update(account)
      #expect(isFirst && seen == nil)
      let (isNews, isChange) = (try await content.read(account), await content.set(sync))
      #expect(!isNews && !isChange)
      sync.connection = .offline
      let isOffline = await content.set(sync)
      let event = try await content.update(account)
      #expect(isOffline && event?.data.contains("Offline") == true)
    }
  }

  /// - a task is open on the page; another device moves it to another list, then deletes it
  /// => the page says which
  @Test func openTask_isFoundInItsNewList() async throws {
    try await withDevices { _, laptop, phone in
      let (account, list, task) = (
        laptop.account, try await laptop.list("Groceries"), try await laptop.item("milk").id
      )
      let garden = try await account.createList("Garden")
      try await settle(laptop, phone)
      let content = LiveContent(
        Page(user: account.user, accounts: [account.user], place: .task(task, inList: list)), seen: nil)
      _ = try await content.read(account)
      let open = try await content.update(account)
      #expect(open?.data.contains("/task/\(task)/edit") == true)
      try await phone.account.moveTask(phone.item("milk").id, toList: phone.list("Garden"))
      try await settle(phone, laptop)
      let isMoved = try await content.read(account)
      let moved = try await content.update(account)
      #expect(isMoved && moved?.data.contains("This task is in another list") == true)
      #expect(moved?.data.contains("/list/\(garden)/\(task)\"") == true)
      try await phone.account.deleteTask(phone.item("milk").id)
      try await settle(phone, laptop)
      let isDeleted = try await content.read(account)
      let deleted = try await content.update(account)
      #expect(isDeleted && deleted?.data.contains("This task was deleted.") == true)
    }
  }

  /// - a server loses a commit of another device, which this one has seen
  /// => the page does not say that all is well
  @Test func frozenTree_isShown() async throws {
    try await withDevices { server, laptop, phone in
      let backup = try await server.backup()
      try await laptop.edit("milk") { $0.isDone = true }
      try await settle(laptop, phone)
      try await server.restore(backup)
      // The first sync may report the error, or only freeze the tree.
      do { try await phone.sync() } catch is ZDCSecurityError {}
      let user = phone.account.user
      let sync = try await phone.account.session.syncManager.syncState(forLocalUserID: user)
      #expect(sync.frozenZones.count == 1)
      let page = Page(
        user: user, accounts: [user], place: .lists, screen: try await phone.account.screen(), sync: sync)
      #expect(page.document.text.contains("failed verification"))
      #expect(!page.document.text.contains("Everything is in the cloud"))
    }
  }

  /// - a tick is sent
  /// => the page that has shown it gets its progress later, in one event for several changes
  @Test func progressIsShownLater_once() async throws {
    try await withDevices { _, laptop, _ in
      let (account, list) = (laptop.account, try await laptop.list("Groceries"))
      let frame = Page(user: account.user, accounts: [account.user], place: .list(list))
      let content = LiveContent(frame, seen: nil)
      _ = try await content.read(account)
      let first = try await content.update(account)
      #expect(first?.data.contains("milk") == true)
      try await laptop.edit("milk") { $0.isDone = true }
      let isNews = try await content.read(account)
      let (isNeeded, isNeededAgain) = (await content.needsProgress(), await content.needsProgress())
      #expect(!isNews && isNeeded && !isNeededAgain)
      await content.showProgress()
      let (isShown, isShownAgain) = (try await content.read(account), try await content.read(account))
      let event = try await content.update(account)
      #expect(isShown && !isShownAgain && event?.data.contains("is-done") == true)
    }
  }
}
