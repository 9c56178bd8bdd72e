import Foundation

/// What a user sees beside a list or a task.
public enum Badge: String, Codable, Hashable, Sendable, CaseIterable {
  /// A change waits to be sent.
  case pending
  /// A change is being sent.
  case syncing
  /// A change of another device replaced one of this device; see ``Activity``.
  case merged
  /// The content is in the cloud, and not on this device yet.
  case needsDownload
}

/// A list as it is shown.
public struct ListItem: Identifiable, Hashable, Sendable {
  /// Its node's id on this device.
  public let id: String
  /// Its node's name.
  public let title: String
  /// When it was created.
  public let created: Date
  /// How many tasks it has, and how many are done.
  public let counts: List.Counts
  /// What to show beside it; changes of its tasks count.
  public let badges: Set<Badge>
}

/// A task as it is shown.
public struct TaskItem: Identifiable, Hashable, Sendable {
  /// Its node's id on this device.
  public let id: String
  /// Nil until the content is downloaded.
  public let task: Task?
  /// The version of the photo, or nil if there is none.
  public let photo: String?
  /// What to show beside it.
  public let badges: Set<Badge>
}

/// A change that the user can look back at, and often undo.
public struct Activity: Identifiable, Hashable, Sendable {
  /// Identifies it for ``Account/undo(_:)``.
  public let id: String
  /// The task that it is about, while it exists.
  public let taskID: String?
  /// The title of the task or list at that time.
  public let title: String
  /// What happened, in words.
  public let change: String
  /// When it happened.
  public let date: Date
  /// Whether ``Account/undo(_:)`` can undo it, or make it again.
  public let canUndo: Bool
  /// Whether it was undone.
  public let isUndone: Bool
}

/// All that one screen of an account shows, read in one transaction.
public struct Screen: Hashable, Sendable {
  /// All lists, by title.
  public var lists: [ListItem] = []
  /// The tasks of the chosen list in their order.
  public var tasks: [TaskItem] = []
  /// The latest first.
  public var activity: [Activity] = []
}

/// What the server stores of a node, beside what this device knows about it.
public struct SealedNode: Hashable, Sendable {
  /// The title, which the server does not know.
  public let title: String
  /// The node's id on the server.
  public let cloudID: String
  /// The id of the node above it.
  public let parentCloudID: String
  /// The size of the sealed content.
  public let bytes: Int
  /// The first bytes of the sealed content.
  public let beginning: Data
}
