import Foundation
import Testing

@testable import TodoKit

/// Titles as they are shown, and tasks as lines of todo.txt.
@Suite struct TextTests {
  @Test(arguments: [
    ("milk", "milk"), ("", "(no title)"), (" \u{3000} ", "(no title)"), ("\u{200B}\u{FEFF}", "(no title)"),
    ("\u{200D}", "(no title)"), ("photo \u{202E}gpj.exe", "photo gpj.exe"), ("a\u{1B}[31mb\r\nc", "a[31mb  c"),
    ("mi\u{200B}lk", "milk"), ("👩‍👩‍👧", "👩‍👩‍👧"), ("<b>milk</b>", "<b>milk</b>"), ("\u{2066}x\u{2069}", "x"),
  ])
  func titlesAreShownWithoutWhatCouldDeceive(_ title: String, _ shown: String) {
    #expect(title.displayed == shown)
  }

  @Test func aTaskBecomesALine_andALineATask() throws {
    let day = try Date("2026-11-24T00:00:00Z", strategy: .iso8601)
    let tasks = [
      Task(listID: "", created: day, title: "milk", rank: ""),
      Task(listID: "", created: day, title: "milk and bread", details: "a+b: 100 %\n", priority: .high, rank: ""),
      Task(listID: "", created: day, title: "milk", priority: .low, isDone: true, rank: ""),
    ]
    let lines = [
      "2026-11-24 milk +My%20list", "(A) 2026-11-24 milk and bread +My%20list note:a%2Bb%3A%20100%20%25%0A",
      "x milk +My%20list pri:C created:2026-11-24",
    ]
    for (task, line) in zip(tasks, lines) {
      #expect(TodoText(task, list: "My list").line == line)
      #expect(TodoText(line: line) == TodoText(task, list: "My list"))
    }
  }

  @Test(arguments: [
    "Call +49 170 123", "milk note:2", "2026-12-01 party", "(A) team", "x", "x 2026-12-01 pay", "pri:A",
    "created:2026-12-01 y",
    "title:a", "title:", "a  b", " a", "a\nb", "100 % title:%41", "",
  ])
  func aTitleIsReadBack_whateverItsWords(_ title: String) throws {
    let day = try Date("2026-11-24T00:00:00Z", strategy: .iso8601)
    for isDone in [false, true] {
      for (priority, list) in [(Priority.high, nil), (.normal, "My list")] {
        let task = Task(listID: "", created: day, title: title, priority: priority, isDone: isDone, rank: "")
        #expect(TodoText(line: TodoText(task, list: list).line) == TodoText(task, list: list))
      }
    }
  }

  @Test func aRankOfAnotherProgram_isNotBelieved() {
    let longest = String(repeating: "z", count: 256)
    for rank in ["1", "0001", "zz", longest] { #expect(Rank.isValid(rank)) }
    for rank in ["", "0", "10", "\u{10FFFF}", "a b", "é", longest + "z"] { #expect(!Rank.isValid(rank)) }
    for (lower, upper) in [(longest, nil), (longest, longest), (nil, String(repeating: "0", count: 255) + "1")] {
      #expect(Rank.isValid(Rank.between(lower, upper)))
    }
  }

  @Test func linesOfOtherProgramsAreRead() throws {
    let done = try #require(TodoText(line: "x 2026-11-24 2026-11-20 (not a priority) call mum @phone +Family due:soon"))
    #expect(done.task.title == "(not a priority) call mum @phone due:soon" && done.list == "Family")
    let created = try Date("2026-11-20T00:00:00Z", strategy: .iso8601)
    #expect(done.task.isDone && done.task.created == created)
    #expect(TodoText(line: "(Z) sleep")?.task.priority == .low)
    #expect(TodoText(line: "(a) no priority")?.task.title == "(a) no priority")
    #expect(TodoText(line: "xylophone")?.task.isDone == false)
    #expect(TodoText(line: "  ") == nil && TodoText(line: "x") == nil && TodoText(line: "+Family") == nil)
  }
}
