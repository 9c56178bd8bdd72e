import Foundation
import TodoKit
import ZeroDarkCloud

/// Output of the commands.
enum Output {
  static func line(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

  static func note(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

  static func json(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  static func names(_ badges: Set<Badge>) -> [String] { badges.map(\.rawValue).sorted() }
}

/// A list as JSON.
struct ListJSON: Encodable {
  var title: String
  var tasks: Int
  var done: Int
  var badges: [String]

  init(_ item: ListItem) {
    title = item.title
    tasks = item.counts.tasks
    done = item.counts.done
    badges = Output.names(item.badges)
  }
}

/// A task as JSON. Before its content is downloaded, it has only a number.
struct TaskJSON: Encodable {
  var number: Int
  var title: String?
  var details: String?
  var priority: Priority?
  var done: Bool?
  var created: Date?
  var photo: Bool
  var badges: [String]

  init(_ item: TaskItem, number: Int) {
    self.number = number
    title = item.task?.title
    details = item.task?.details
    priority = item.task?.priority
    done = item.task?.isDone
    created = item.task?.created
    photo = item.photo != nil
    badges = Output.names(item.badges)
  }

  var line: String {
    guard let title, let priority, let done else { return "\(number). … is not downloaded yet" }
    let mark = [Priority.high: "!", .normal: " ", .low: "·"][priority] ?? " "
    let extra = (photo ? ["photo"] : []) + badges
    return "\(number). [\(done ? "x" : " ")]\(mark) \(title.displayed)"
      + (extra.isEmpty ? "" : "  (\(extra.joined(separator: ", ")))")
  }
}

/// An activity as JSON.
struct ActivityJSON: Encodable {
  var id: String
  var kind: Activity.Kind
  var date: Date
  var title: String
  var change: String
  var canUndo: Bool
  var undone: Bool

  init(_ activity: Activity) {
    id = activity.id
    kind = activity.kind
    date = activity.date
    title = activity.title
    change = activity.change
    canUndo = activity.canUndo
    undone = activity.isUndone
  }
}
