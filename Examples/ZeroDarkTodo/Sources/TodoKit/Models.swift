import Foundation
import ZeroDarkCloud

/// A list in the database of this device.
public struct List: Codable, Hashable, Sendable {
  static let collection = "lists"

  /// When it was created.
  public var created: Date
  /// The number of its tasks, and of those that are done.
  public var counts = Counts()

  /// The number of a list's tasks, and of those that are done. They are the metadata of the list's node, so that a new
  /// device can show them before it has downloaded a task.
  public struct Counts: Codable, Hashable, Sendable {
    /// All tasks.
    public var tasks = 0
    /// The completed ones.
    public var done = 0

    /// These numbers, within limits. Any member of a shared list can write any numbers, and a sum of some would overflow.
    var limited: Counts {
      let tasks = min(max(tasks, 0), 1_000_000)
      return Counts(tasks: tasks, done: min(max(done, 0), tasks))
    }
  }

  /// The size above which the content of a list or a task is neither uploaded nor downloaded, in bytes. A member of a
  /// shared list could otherwise fill the memory of all others.
  static let maxContentBytes: UInt64 = 1 << 20
}

extension Date {
  /// This date, if it is between 1970 and 2200, or else the nearest of the two: other devices can write any date, and some
  /// cannot be formatted.
  var limited: Date { min(max(self, Date(timeIntervalSince1970: 0)), Date(timeIntervalSince1970: 7_258_118_400)) }
}

/// The content of a list's node. Its metadata is a ``List/Counts``.
struct ListCloudJSON: Codable {
  var created: Date
}

/// The priority of a task.
public enum Priority: String, Codable, Hashable, Sendable, CaseIterable {
  case low, normal, high
}

/// A task in the database of this device. `@Syncable` properties are merged one by one when two devices edit a task.
public struct Task: ZDCRecord, Codable, Hashable {
  static let collection = "tasks"

  /// The id of the list's node on this device. Other devices have other ids, so it is not uploaded.
  public var listID: String
  /// When it was created.
  public var created: Date
  /// The title.
  @Syncable public var title: String
  /// Additional text.
  @Syncable public var details = ""
  /// The priority.
  @Syncable public var priority = Priority.normal
  /// Whether it is completed.
  @Syncable public var isDone = false
  /// The task's place in its list; see ``Rank``.
  @Syncable public var rank: String

  /// Other devices do not download larger content. They keep the version before it, and their next edit replaces it.
  ///
  /// - Throws: `invalidParameter`.
  func checkSize() throws {
    guard try JSONEncoder().encode(TaskCloudJSON(self)).count <= List.maxContentBytes else {
      throw ZDCError(.invalidParameter, detail: "a task has at most 1 MiB of text, as it is stored")
    }
  }

  /// The properties that are merged one by one.
  public static var syncableFields: [ZDCField<Task>] {
    [
      ZDCField("title", \._title), ZDCField("details", \._details), ZDCField("priority", \._priority),
      ZDCField("isDone", \._isDone), ZDCField("rank", \._rank),
    ]
  }
}

/// The content of a task's node.
struct TaskCloudJSON: Codable {
  var title: String
  var details: String
  var created: Date
  var completed: Bool
  var priority: Priority
  var rank: String

  init(_ task: Task) {
    title = task.title
    details = task.details
    created = task.created
    completed = task.isDone
    priority = task.priority
    rank = task.rank
  }

  /// Returns the task. Another user may have written the content with any program.
  func task(inList listID: String) -> Task {
    Task(
      listID: listID, created: created.limited, title: title, details: details, priority: priority, isDone: completed,
      rank: Rank.isValid(rank) ? rank : Rank.between(nil, nil))
  }
}

/// An event of a list that the user did not cause, for the activity.
struct Notice: Codable {
  static let collection = "notices"
  /// Older notices are removed.
  static let limit = 50

  var user: String
  var title: String
  var change: String
  var date: Date
}

/// An invitation to a list, from a message in the inbox.
struct Invitation: Codable, Hashable {
  static let collection = "invitations"

  /// The verified sender of the message, and the owner of the list.
  var senderID: String
  /// Leads to the list's node in the sender's tree.
  var invite: ZDCGraftInvite
  var title: String
  var date: Date
}

/// The content of a message that invites to a list.
struct InvitationCloudJSON: Codable {
  private static let kind = "list-invitation"
  private static let (maxBytes, maxTitleBytes) = (16_384, 1_024)

  private var kind = Self.kind
  var title: String
  var cloudID: String
  var cloudPath: ZDCCloudPath

  var invite: ZDCGraftInvite { ZDCGraftInvite(cloudID: cloudID, cloudPath: cloudPath) }

  init(title: String, invite: ZDCGraftInvite) {
    (self.title, cloudID, cloudPath) = (title, invite.cloudID, invite.cloudPath)
  }

  /// Reads a message, which may be anything: its sender is known, but need not use this app. Returns nil if it is no
  /// invitation to a list of the sender.
  init?(message: Data, from senderID: String) {
    guard message.count <= Self.maxBytes, let json = try? JSONDecoder().decode(Self.self, from: message),
      json.kind == Self.kind, (1...Self.maxTitleBytes).contains(json.title.utf8.count),
      !json.title.unicodeScalars.contains("\0"), json.cloudPath.cloudID == json.cloudID,
      json.cloudPath.ownerID == senderID
    else { return nil }
    self = json
  }
}

/// The tasks of a list that a command has printed with their numbers. Its key is the list's.
struct ShownTasks: Codable {
  static let collection = "shownTasks"

  var ids: [String]
}

/// The name that the user of this device has given another user.
struct Nickname: Codable {
  static let collection = "names"
  static let maxBytes = 200

  var name: String
}
