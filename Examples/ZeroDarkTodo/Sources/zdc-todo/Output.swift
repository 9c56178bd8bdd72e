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

  static func numbered(_ items: [TaskItem]) -> [TaskJSON] {
    items.enumerated().map { TaskJSON($1, number: $0 + 1) }
  }

  var line: String {
    guard let title, let priority, let done else { return "\(number). … is not downloaded yet" }
    let mark = [Priority.high: "!", .normal: " ", .low: "·"][priority] ?? " "
    let extra = (photo ? ["photo"] : []) + badges
    return "\(number). [\(done ? "x" : " ")]\(mark) \(title.displayed)"
      + (extra.isEmpty ? "" : "  (\(extra.joined(separator: ", ")))")
  }
}

/// A list with its tasks as JSON.
struct ListContentJSON: Encodable {
  var title: String
  var tasks: [TaskJSON]

  init(title: String, items: [TaskItem]) {
    self.title = title
    tasks = TaskJSON.numbered(items)
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

/// Another user as JSON, with the safety number to compare.
struct PersonJSON: Encodable {
  var user: String
  var name: String?
  var identity: String?
  var safetyNumber: String

  init(_ person: Person) {
    user = person.id
    name = person.name
    identity = person.identity.map(Output.word)
    safetyNumber = person.safetyNumber.joined(separator: " ")
  }

  /// Three lines of four groups, as people read them aloud.
  static func lines(_ groups: [String]) -> [String] {
    stride(from: 0, to: groups.count, by: 4).map { groups[$0..<min($0 + 4, groups.count)].joined(separator: " ") }
  }
}

extension Output {
  static func word(_ identity: ZDCIdentityState) -> String {
    switch identity {
    case .seen: "notVerified"
    case .verified: "verified"
    case .changed: "changed"
    case .closed: "closed"
    }
  }
}

/// A member of a list as JSON.
struct MemberJSON: Encodable {
  var user: String
  var name: String?
  var role: String
  var isYou: Bool
  var identity: String?

  init(_ member: Member) {
    user = member.id
    name = member.person.name
    role = member.isOwner ? "owner" : member.canEdit ? "editor" : "reader"
    isYou = member.isUser
    identity = member.person.identity.map(Output.word)
  }

  var line: String {
    let extra =
      isYou ? "  (you)" : identity == "verified" ? "  (verified)" : identity == "changed" ? "  (new words)" : ""
    return "\(user)  \(role)\(name.map { "  \($0.displayed)" } ?? "")\(extra)"
  }
}

/// The inbox as JSON.
struct InboxJSON: Encodable {
  struct Invitation: Encodable {
    var id: String
    var title: String
    var sender: String
    var senderName: String?
    var date: Date
  }

  struct Sender: Encodable {
    var user: String
    var name: String?
    var messages: Int
    var date: Date

    var count: String { "\(messages) \(messages == 1 ? "message" : "messages")" }

    init(_ sender: UnknownSender) {
      (user, name, messages, date) = (sender.id, sender.person?.name, sender.messages, sender.date)
    }
  }

  var invitations: [Invitation]
  var unknownSenders: [Sender]
  /// Known people who have declared the key of these messages compromised.
  var compromisedKeys: [Sender]

  init(_ invitations: [InvitationItem], _ senders: [UnknownSender]) {
    self.invitations = invitations.map {
      Invitation(id: $0.id, title: $0.title, sender: $0.sender.id, senderName: $0.sender.name, date: $0.date)
    }
    unknownSenders = senders.filter { $0.person == nil }.map(Sender.init)
    compromisedKeys = senders.filter { $0.person != nil }.map(Sender.init)
  }

  var lines: [String] {
    invitations.map { "\($0.title.displayed)  from \($0.senderName?.displayed ?? $0.sender)" }
      + unknownSenders.map { "unknown user \($0.user)  \($0.count)" }
      + compromisedKeys.map { "\($0.name?.displayed ?? $0.user)  \($0.count) under a compromised key" }
  }
}
