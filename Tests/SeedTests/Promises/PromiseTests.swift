import Foundation
import Testing

/// Checks that the table of promises is complete and correct, and prints it.
@Suite struct PromiseTests {
  private static func sources() throws -> TestSources {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    let tests = ["../..", "../../../Examples/ZeroDarkTodo/Tests"].map { folder.appendingPathComponent($0) }
    return try TestSources(folders: tests.map(\.standardizedFileURL))
  }

  @Test(arguments: PromiseGroup.all.indices)
  func everyTestThatIsNamed_exists(group: Int) throws {
    let sources = try Self.sources()
    for row in PromiseGroup.all[group].rows {
      guard case .tested(let tests) = row.state else { continue }
      #expect(!tests.isEmpty, "\(row.id) names no test")
      for test in tests {
        #expect(sources.tests.contains(test), "\(row.id): there is no test \(test)")
        #expect(!sources.disabled.contains(test), "\(row.id): \(test) does not run")
      }
    }
  }

  @Test func everyPromiseIsKept() {
    let due = PromiseGroup.all.flatMap(\.rows).filter { $0.work != nil }.map(\.id)
    #expect(due == [])
  }

  /// A row may be pending, but not absent.
  @Test func noRowIsLeftOut() {
    for group in PromiseGroup.all {
      #expect(group.rows.count == group.count, "\(group.title)")
      #expect(group.rows.allSatisfy { $0.id.hasPrefix(group.prefix) && $0.wording.count > 15 })
    }
    let ids = PromiseGroup.all.flatMap(\.rows).map(\.id)
    #expect(Set(ids).count == ids.count)
    let numbers = Promise.behaviours.map { Int($0.id.dropFirst("behaviour-".count)) }
    #expect(numbers == (1...25).map(Optional.some))
    for (seed, count) in [("000", 8), ("001", 10), ("002", 7), ("003", 12), ("004", 12)] {
      let rows = Promise.easyToMiss.filter { $0.id.hasPrefix("check-\(seed)-") }
      #expect(rows.map(\.id) == (1...count).map { "check-\(seed)-\($0)" })
    }
  }

  @Test func theTable_isPrinted() {
    for group in PromiseGroup.all {
      print("\n## \(group.title)")
      for row in group.rows { print(row.line) }
    }
    print("\n" + Self.summary(PromiseGroup.all.flatMap(\.rows)))
  }

  private static func summary(_ rows: [Promise]) -> String {
    let due = rows.filter { $0.work != nil }.count
    return "Promises: \(rows.count) rows, \(rows.count - due) tested, \(due) due"
  }

  // MARK: The scan

  @Test func theScan_findsTestsByTheirSuite_andNothingElse() {
    let text = """
      @Suite struct First {
        @Test func one() {}
        @Test(arguments: [1, 2])
        func two(number: Int) {}
        func helper() {}
        // @Test func inAComment() {}
      }

      extension Second {
        @Test(.disabled("because")) func three() {}
      }
      """
    let sources = TestSources(text: text)
    #expect(sources.tests == ["First/one", "First/two", "Second/three"])
    #expect(sources.disabled == ["Second/three"])
  }
}

extension Promise {
  fileprivate var work: String? {
    if case .due(let work) = state { work } else { nil }
  }

  fileprivate var line: String {
    switch state {
    case .tested(let tests): "tested  \(id): \(wording) [\(tests.joined(separator: ", "))]"
    case .due(let work): "due     \(id): \(wording) [\(work)]"
    }
  }
}
