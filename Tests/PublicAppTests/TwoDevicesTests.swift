import Testing
import ZDCMerge
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Two devices with an app that uses only the public API, and a real server between them.
@Suite(.timeLimit(.minutes(20))) struct TwoDevicesTests {
  /// Runs `body` with two devices of one account that both have `groceries: Groceries [milk]`.
  private func withDevices(_ body: (_ a: SheetsApp, _ b: SheetsApp) async throws -> Void) async throws {
    let server = try await TestServer.start()
    let a = try SheetsApp(serverURL: server.url)
    let b = try SheetsApp(serverURL: server.url)
    try await b.login(try await a.createAccount())
    try await a.sync()
    try await a.create("groceries", Sheet(title: "Groceries", items: ["milk"]))
    try await a.sync()
    try await b.sync()
    #expect(a.delegate.takeLog() == ["pushed /groceries"])
    #expect(b.delegate.takeLog() == ["new /groceries"])
    #expect(try await b.sheets() == ["groceries: Groceries [milk]"])
    try await body(a, b)
    #expect(try await a.sheets() == b.sheets())
    for app in [a, b] {
      let state = try await app.zdc.syncManager?.syncState(forLocalUserID: app.localUserID)
      #expect(state?.pending.total == 0 && state?.lastError == nil)
      try await app.quit()
    }
    try await server.stop()
  }

  @Test func editsOfBoth_areMerged_undone_andRedone() async throws {
    try await withDevices { a, b in
      try await a.edit("groceries") { $0.title = "Shopping" }
      let bread = try await b.edit("groceries") { $0.items.append("bread") }
      try await a.sync()
      try await b.sync()
      #expect(b.delegate.takeLog() == ["modified /groceries", "conflict data /groceries", "pushed /groceries"])
      #expect(try await b.sheets() == ["groceries: Shopping [milk, bread]"])
      try await a.sync()
      #expect(try await a.sheets() == ["groceries: Shopping [milk, bread]"])

      let again = try await b.undo(bread, in: "groceries")
      try await b.sync()
      try await a.sync()
      #expect(try await a.sheets() == ["groceries: Shopping [milk]"])
      try await b.undo(again, in: "groceries")
      try await b.sync()
      try await a.sync()
      #expect(try await a.sheets() == ["groceries: Shopping [milk, bread]"])
    }
  }

  @Test func queuedChanges_areSentAfterARelaunch_andMergesCanStillBeUndone() async throws {
    try await withDevices { a, b in
      let eggs = try await a.edit("groceries") { $0.items.append("eggs") }
      try await a.quit()
      try a.launch()
      #expect(try await a.waits("groceries") == ["putData ready"])
      try await b.edit("groceries") { $0.items.append("tea") }
      try await b.sync()
      try await a.sync()
      try await b.sync()
      // The eggs were inserted after the milk, and stay there.
      #expect(try await b.sheets() == ["groceries: Groceries [milk, eggs, tea]"])
      try await a.undo(eggs, in: "groceries")
      try await a.sync()
      try await b.sync()
      #expect(try await b.sheets() == ["groceries: Groceries [milk, tea]"])
    }
  }

  @Test func twoSheetsOfOneName_bothStay() async throws {
    try await withDevices { a, b in
      try await a.create("plans", Sheet(title: "A's"))
      try await b.create("plans", Sheet(title: "B's"))
      try await a.sync()
      try await b.sync()
      try await a.sync()
      #expect(try await a.sheets() == ["groceries: Groceries [milk]", "plans 2: B's []", "plans: A's []"])
    }
  }

  @Test func sheetThatOneDeletes_andTheOtherEdits_stays() async throws {
    try await withDevices { a, b in
      try await b.edit("groceries") { $0.items.append("bread") }
      try await a.delete("groceries")
      try await a.sync()
      #expect(try await a.sheets() == [])
      try await b.sync()
      #expect(b.delegate.takeLog() == ["deleted but edited here: groceries", "pushed /groceries"])
      try await a.sync()
      #expect(try await a.sheets() == ["groceries: Groceries [milk, bread]"])
    }
  }

  @Test func sheetThatOneDeletes_isGoneOnBoth_andSoIsARename() async throws {
    try await withDevices { a, b in
      try await a.create("old", Sheet(title: "Old"))
      try await a.sync()
      try await b.sync()
      try await a.rename("old", to: "new")
      try await b.delete("groceries")
      try await b.sync()
      try await a.sync()
      #expect(a.delegate.takeLog().contains("deleted /groceries"))
      try await b.sync()
      #expect(b.delegate.takeLog().contains("moved /old -> /new"))
      #expect(try await b.sheets() == ["new: Old []"])
    }
  }

  @Test func theShownList_followsTheOtherDevice() async throws {
    try await withDevices { a, b in
      var shown = try b.followedSheets().makeAsyncIterator()
      #expect(try await shown.next() == ["groceries: Groceries [milk]"])
      try await a.edit("groceries") { $0.items.append("jam") }
      try await a.sync()
      try await b.sync()
      while let sheets = try await shown.next(), sheets != ["groceries: Groceries [milk, jam]"] {}
    }
  }
}
