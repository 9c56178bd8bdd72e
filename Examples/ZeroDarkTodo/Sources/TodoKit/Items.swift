import Foundation

/// A sync status that is shown next to a list or a task.
public enum Badge: String, Codable, Hashable, Sendable, CaseIterable {
  /// A change is queued.
  case pending
  /// A change is being sent.
  case syncing
  /// A change of another device replaced one of this device; see ``Activity``.
  case merged
  /// The content is in the cloud, and not on this device yet.
  case needsDownload
}

/// A list for display.
public struct ListItem: Identifiable, Hashable, Sendable {
  /// Its node's id on this device.
  public let id: String
  /// Its node's name.
  public let title: String
  /// When it was created.
  public let created: Date
  /// The number of its tasks, and of those that are done.
  public let counts: List.Counts
  /// Its sync status. Changes of its tasks count too.
  public let badges: Set<Badge>
}

/// A task for display.
public struct TaskItem: Identifiable, Hashable, Sendable {
  /// Its node's id on this device.
  public let id: String
  /// Nil until the content is downloaded.
  public let task: Task?
  /// Identifies the photo's version on this device. Nil if there is no photo.
  public let photo: String?
  /// Its sync status.
  public let badges: Set<Badge>
}

/// An edit of this device, or the outcome of a conflict. Many can be undone.
public struct Activity: Identifiable, Hashable, Sendable {
  /// The origin of an activity.
  public enum Kind: String, Codable, Hashable, Sendable {
    /// An edit of this device.
    case edit
    /// The outcome of a conflict in which this device lost nothing.
    case conflict
    /// The outcome of a conflict in which a change of another device replaced one of this device.
    case loss
  }

  /// Identifies it for ``Account/undo(_:)``.
  public let id: String
  /// Its origin.
  public let kind: Kind
  /// The task concerned, as long as it exists.
  public let taskID: String?
  /// The title of the task or list at that time.
  public let title: String
  /// A description for display.
  public let change: String
  /// When it happened.
  public let date: Date
  /// Whether ``Account/undo(_:)`` can undo or redo it.
  public let canUndo: Bool
  /// Whether it was undone.
  public let isUndone: Bool
}

/// A consistent snapshot of an account for one screen, read in one transaction.
public struct Screen: Hashable, Sendable {
  /// All lists, by title.
  public var lists: [ListItem] = []
  /// The tasks of the chosen list in their order.
  public var tasks: [TaskItem] = []
  /// Edits and outcomes of conflicts, the latest first.
  public var activity: [Activity] = []
}

/// A node as the server stores it, with the title that only this device can read.
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
