import Testing
import TodoKit

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
}
