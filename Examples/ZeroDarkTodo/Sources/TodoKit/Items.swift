import Foundation
import ZeroDarkCloud

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
  /// The name of its node. Each member has their own.
  public let title: String
  /// When it was created.
  public let created: Date
  /// The number of its tasks, and of those that are done.
  public var counts: List.Counts
  /// Its sync status. Changes of its tasks count too.
  public var badges: Set<Badge>
  /// Everyone with access, the owner first; empty for a list that is not shared.
  public let members: [Member]
  /// Whether it belongs to the account.
  public let isOwn: Bool
  /// Whether the user can change it.
  public let canEdit: Bool
  /// Whether it was accepted and has not been received yet.
  public let isArriving: Bool
}

/// A person with access to a list.
public struct Member: Identifiable, Hashable, Sendable {
  /// The person.
  public let person: Person
  /// Whether it is the user.
  public let isUser: Bool
  /// Whether the list is theirs.
  public let isOwner: Bool
  /// Whether they can change the list.
  public let canEdit: Bool

  /// The user ID.
  public var id: String { person.id }
}

/// Another user, as this device knows them.
public struct Person: Identifiable, Hashable, Sendable {
  /// The user ID.
  public let id: String
  /// The name that the user has given them.
  public let name: String?
  /// The name that they have chosen themselves, which may be anyone's; nil if this device has none.
  public let ownName: String?
  /// Their handle, without an `@`. No two users of a server have the same.
  public let handle: String?
  /// The state of their identity; nil if this device has never met them.
  public let identity: ZDCIdentityState?
  /// Twelve groups of five digits. Both people see the same ones, unless an attacker is between them.
  public let safetyNumber: [String]

  /// The name that the user has given them, their own one, their handle, or else the first characters of the ID.
  ///
  /// Their own name is in quotation marks and has the first characters of the ID: it may be the handle or the name of
  /// someone else.
  public var label: String {
    name ?? ownName.map { "“\($0.filter { !"“”".contains($0) })” (\(id.prefix(8)))" } ?? handle.map { "@\($0)" }
      ?? String(id.prefix(8))
  }

  /// The first character of a name, for a picture.
  public var initial: String { String((name ?? ownName ?? handle ?? id).displayed.prefix(1)).uppercased() }
}

/// An invitation that the user has neither accepted nor declined.
public struct InvitationItem: Identifiable, Hashable, Sendable {
  /// Its message's id on this device.
  public let id: String
  /// The sender, who owns the list.
  public let sender: Person
  /// The title that the sender has given the list.
  public let title: String
  /// When it was received.
  public let date: Date
}

/// Someone whose messages wait for the user's decision: a user whom the account does not know, or a known person whose key
/// was compromised. The server's claims about an unknown user are not verified.
public struct UnknownSender: Identifiable, Hashable, Sendable {
  /// The user ID.
  public let id: String
  /// The known person. They have declared the key compromised that signed these messages, so anyone may have written them.
  public let person: Person?
  /// The number of messages.
  public let messages: Int
  /// When the first message was sent.
  public let date: Date
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
  public var badges: Set<Badge>
}

/// A change of this device, the outcome of a conflict, or the end of a list of another user. Many can be undone.
public struct Activity: Identifiable, Hashable, Sendable {
  /// The origin of an activity.
  public enum Kind: String, Codable, Hashable, Sendable {
    /// A list or task that this device created, changed or deleted.
    case edit
    /// The outcome of a conflict in which this device lost nothing.
    case conflict
    /// The outcome of a conflict in which a change of another device replaced one of this device.
    case loss
    /// The end of a list of another user: the owner deleted it, or removed the user.
    case notice
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
  /// Changes of this device, outcomes of conflicts and ends of lists, the latest first.
  public var activity: [Activity] = []
  /// The number of losses in tasks that the user has neither undone nor dismissed.
  public var losses = 0
  /// Pending invitations, the latest first.
  public var invitations: [InvitationItem] = []
}

extension Screen {
  /// The screen of an account that has nothing.
  public static let empty = Screen()

  /// Whether it shows more than an earlier one, apart from badges and numbers of tasks, which change several times while a
  /// change is sent or received.
  ///
  /// A tick that is not sent yet is no news: the page has shown it before it was stored.
  public func hasNews(since earlier: Screen) -> Bool {
    guard tasks.count == earlier.tasks.count, withoutProgress == earlier.withoutProgress else { return true }
    return zip(tasks, earlier.tasks).contains { $0.hasNews(since: $1) }
  }

  private var withoutProgress: Screen {
    var screen = self
    screen.tasks = []
    for index in screen.lists.indices {
      (screen.lists[index].badges, screen.lists[index].counts) = ([], List.Counts())
    }
    return screen
  }
}

extension TaskItem {
  fileprivate func hasNews(since earlier: TaskItem) -> Bool {
    guard id == earlier.id, photo == earlier.photo else { return true }
    guard let task, let before = earlier.task else { return task != earlier.task }
    let isTickedHere = task.isDone != before.isDone && !badges.isDisjoint(with: [.pending, .syncing])
    let isTickedThere = task.isDone != before.isDone && !isTickedHere
    return isTickedThere || task.title != before.title || task.details != before.details
      || task.priority != before.priority || task.rank != before.rank
  }
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
