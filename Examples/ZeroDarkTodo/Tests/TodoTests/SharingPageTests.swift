import Foundation
import Testing
import TodoKit
import ZeroDarkCloudTesting

/// The pages of shared lists and invitations, without a browser. The other person is a device of the test.
@Suite(.timeLimit(.minutes(5))) struct SharingPageTests {
  private static let title = "<script>alert(1)</script>"

  /// A person with a list, who has invited the page's account to it.
  private func withInvitation(
    canEdit: Bool = true, _ body: @Sendable (PageTests.Browser, _ other: Device) async throws -> Void
  ) async throws {
    try await PageTests().withPage { browser, _, _ in
      let folder = try TemporaryFolder()
      let manager = try ZDCManager(
        server: browser.server.url.absoluteString, folder: folder.url, syncsAutomatically: false)
      let other = Device(manager: manager, account: try await manager.createAccount().account)
      let list = try await other.account.createList(Self.title)
      try await other.account.addTask("cake", to: list)
      try await other.account.share(list, with: browser.user, canEdit: canEdit)
      try await other.sync()
      try await body(browser, other)
      try await manager.close()
    }
  }

  /// Loads a page again until it has the text, and returns it.
  private func page(_ browser: PageTests.Browser, _ path: String, with text: String) async throws -> String {
    while true {
      let (status, page) = try await browser.get("/account/\(browser.user)\(path)")
      if status == 200, page.contains(text) { return page }
      try await _Concurrency.Task.sleep(for: .milliseconds(50))
    }
  }

  /// Returns the part of a page between two texts.
  private func part(_ page: String, after start: String, before end: String) throws -> String {
    let rest = try #require(page.range(of: start).map { page[$0.upperBound...] })
    return String(rest[..<(try #require(rest.range(of: end)).lowerBound)])
  }

  /// Accepts the sender and the invitation, and returns the list's address.
  private func accept(_ browser: PageTests.Browser, _ other: Device) async throws -> String {
    let user = other.account.user
    _ = try await page(browser, "/invitations", with: "id=\"s-\(user)\"")
    #expect(try await browser.post("/senders/\(user)/accept", "").0 == 303)
    let invitations = try await page(browser, "/invitations", with: "id=\"i-")
    let id = try part(invitations, after: "id=\"i-", before: "\"")
    #expect(try await browser.post("/invitations/\(id)/accept", "").0 == 303)
    let lists = try await page(browser, "", with: "&lt;script&gt;")
    let links = lists.components(separatedBy: "<li id=\"l-").dropFirst()
    let link = try #require(links.first { $0.contains("&lt;script&gt;") })
    return "/list/" + String(link.prefix { $0 != "\"" })
  }

  @Test func aListIsAcceptedAndEdited_alsoUnderItsEncodedAddress() async throws {
    try await withInvitation { browser, other in
      let path = try await accept(browser, other)
      let encoded = try #require(
        path.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(.init(charactersIn: "/-."))))
      #expect(encoded != path)
      let list = try await page(browser, encoded, with: "cake")
      #expect(list.contains("<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>") && !list.contains("<script>alert"))
      #expect(try await browser.post(encoded + "/tasks", "title=jam&priority=normal").0 == 303)
      while try await other.lines().count < 2 { try await other.sync() }
      #expect(try await other.lines() == ["- cake [normal]", "- jam [normal]"])
      let members = try await page(browser, path + "/share", with: "Leave the list")
      #expect(members.contains("Owner") && members.contains("<bdi>You</bdi>") && !members.contains("Add a person"))
      #expect(try await browser.post(path + "/leave", "").0 == 303)
      while try await !other.members(Self.title).isEmpty { try await other.sync() }
      _ = try await page(browser, encoded, with: "no longer have access")
    }
  }

  @Test func theOwnerDeletesTheList_andThePageSaysSo() async throws {
    try await withInvitation { browser, other in
      let path = try await accept(browser, other)
      let list = try await page(browser, path, with: "cake")
      #expect(list.contains("Leave the list") && !list.contains("Delete the list"))
      #expect(try await browser.post(path + "/delete", "").0 == 422)
      try await other.account.deleteList(other.list(Self.title))
      try await other.sync()
      _ = try await page(browser, path, with: "no longer have access")
      let activity = try await page(browser, "/activity", with: "its owner has deleted this list")
      #expect(activity.contains("<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>"))
    }
  }

  @Test func aReadersPage_hasNothingToChangeTheList() async throws {
    try await withInvitation(canEdit: false) { browser, other in
      let path = try await accept(browser, other)
      let list = try await page(browser, path, with: "cake")
      #expect(
        list.contains("You can read this list") && !list.contains("id=\"new-task\"") && list.contains(" disabled"))
      let task = try part(list, after: "data-task=\"", before: "\"")
      let details = try await page(browser, path + "/" + task, with: "cake")
      #expect(
        details.contains("<fieldset disabled>") && !details.contains(">Save<") && !details.contains("data-upload"))
      #expect(try await browser.post(path + "/tasks", "title=jam").0 == 403)
      #expect(try await browser.post("/task/\(task)/done", "done=1").0 == 403)
    }
  }

  @Test func peopleAreFoundByTheirID_andSharedWith() async throws {
    try await withInvitation { browser, other in
      let user = other.account.user
      let lists = try await browser.get("/account/\(browser.user)").1
      let own = try part(lists, after: "<li id=\"l-", before: "\"")
      let wrong = [
        try await browser.post("/list/\(own)/share/find", "user=nobody").0,
        try await browser.post("/list/\(own)/share/find", "user=\(browser.user)").0,
        try await browser.post("/list/\(own)/share/nobody", "rights=edit").0,
        try await browser.post("/list/none/share/\(user)", "rights=edit").0,
        try await browser.post("/invitations/none/accept", "").0,
      ]
      #expect(wrong == [404, 422, 404, 404, 404])
      #expect(try await browser.post("/list/\(own)/share/find", "user=+\(user)%0A").0 == 303)
      let person = try await page(browser, "/list/\(own)/share/\(user)", with: "Share the list")
      let number = try other.account.people.person(browser.user).safetyNumber
      #expect(person.contains(number.map { "<li>\($0)</li>" }.joined()) && person.contains("Not verified"))
      #expect(try await browser.post("/person/\(user)/name", "name=%3Cb%3EBob").0 == 303)
      #expect(try await browser.post("/person/\(user)/name", "name=\(String(repeating: "x", count: 201))").0 == 422)
      #expect(try await browser.post("/person/\(user)/verify", "").0 == 303)
      #expect(try await browser.post("/list/\(own)/share/\(user)", "rights=read").0 == 303)
      let shared = try await page(browser, "/list/\(own)/share", with: "Can read")
      #expect(shared.contains("<bdi>&lt;b&gt;Bob</bdi>") && shared.contains("Verified"))
      while try await other.invitations().isEmpty { try await other.sync() }
      #expect(try await browser.post("/list/\(own)/unshare/\(user)", "").0 == 303)
      _ = try await page(browser, "/list/\(own)/share", with: "Only you can read this list")
    }
  }

  @Test(arguments: ["decline", "block"])
  func unknownPeopleAreRefused(_ action: String) async throws {
    try await withInvitation { browser, other in
      let user = other.account.user
      let invitations = try await page(browser, "/invitations", with: "id=\"s-\(user)\"")
      #expect(!invitations.contains("script&gt;"))  // nothing of the message
      #expect(try await browser.post("/senders/\(user)/\(action)", "", origin: "http://evil.example").0 == 403)
      #expect(try await browser.post("/senders/\(user)/\(action)", "").0 == 303)
      #expect(try await !browser.get("/account/\(browser.user)/invitations").1.contains(user))
    }
  }
}
