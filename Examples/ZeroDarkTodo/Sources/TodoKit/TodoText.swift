import Foundation

/// A task as a line of a todo.txt file (todotxt.org).
///
/// ```
/// (A) 2026-11-24 milk +Groceries note:two%20bottles
/// x bread +Groceries pri:C created:2026-11-24
/// ```
///
/// High and low priority are A and C. The list is the project. `key:value` words store properties that the format lacks. A
/// title of which a reader would take words for a part of the format is written as `title:Call%20%2B49%20170`.
public struct TodoText: Hashable, Sendable {
  /// The task, which is not in a list yet.
  public var task: Task
  /// The title of the list, or nil if the line names no project.
  public var list: String?

  /// Creates the line of a task.
  public init(_ task: Task, list: String?) {
    self.task = task
    self.list = list
  }

  /// Reads a line, or returns nil if it has no text.
  public init?(line: String) {
    var words = line.split(whereSeparator: \.isWhitespace).map(String.init)[...]
    var task = Task(listID: "", created: Date(), title: "", rank: "")
    if words.first == "x" {
      task.isDone = true
      words.removeFirst()
      if words.first.flatMap(Self.date) != nil { words.removeFirst() }  // when it was completed
    }
    if let priority = words.first.flatMap(Self.priority) {
      task.priority = priority
      words.removeFirst()
    }
    if let created = words.first.flatMap(Self.date) {
      task.created = created
      words.removeFirst()
    }
    self.init(task, list: nil)
    let title = words.filter { !take($0) }
    guard let first = title.first else { return nil }
    let isEscaped = title.count == 1 && first.hasPrefix("title:")
    self.task.title = isEscaped ? Self.value(of: first) : title.joined(separator: " ")
  }

  /// The line, without its end. A reader gets the same title from it.
  public var line: String {
    let plain = line(title: task.title.split(whereSeparator: \.isWhitespace).joined(separator: " "))
    return Self(line: plain)?.task.title == task.title ? plain : line(title: "title:\(Self.escaped(task.title))")
  }

  private func line(title: String) -> String {
    let letter: String? = [.high: "A", .low: "C"][task.priority]
    let day = Self.day(task.created)
    var words = task.isDone ? ["x"] : letter.map { ["(\($0))", day] } ?? [day]
    words.append(title)
    if let list { words.append("+\(Self.escaped(list))") }
    if task.isDone { words += (letter.map { ["pri:\($0)"] } ?? []) + ["created:\(day)"] }
    if !task.details.isEmpty { words.append("note:\(Self.escaped(task.details))") }
    return words.joined(separator: " ")
  }

  /// Whether the word is part of the format, rather than of the title.
  private mutating func take(_ word: String) -> Bool {
    if word.hasPrefix("+"), word.count > 1 {
      list = String(word.dropFirst()).removingPercentEncoding ?? String(word.dropFirst())
    } else if word.hasPrefix("note:") {
      task.details = Self.value(of: word)
    } else if word.hasPrefix("pri:"), let priority = Self.priority("(\(word.dropFirst(4)))") {
      task.priority = priority
    } else if word.hasPrefix("created:"), let date = Self.date(String(word.dropFirst(8))) {
      task.created = date
    } else {
      return false
    }
    return true
  }

  /// (A) is high, (B) is normal, the rest is low.
  private static func priority(_ word: String) -> Priority? {
    guard word.count == 3, word.hasPrefix("("), word.hasSuffix(")"), let letter = word.dropFirst().first,
      ("A"..."Z").contains(letter)
    else { return nil }
    return letter == "A" ? .high : letter == "B" ? .normal : .low
  }

  private static let format = Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day()

  private static func day(_ date: Date) -> String { date.formatted(format) }

  private static func date(_ word: String) -> Date? {
    word.count == 10 ? try? Date(word, strategy: format) : nil
  }

  /// Returns the value of a word `key:value`.
  private static func value(of word: String) -> String {
    let value = String(word.drop { $0 != ":" }.dropFirst())
    return value.removingPercentEncoding ?? value
  }

  private static func escaped(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(.init(charactersIn: "-_.,!?"))) ?? text
  }
}
