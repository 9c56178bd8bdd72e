public import Foundation
internal import Synchronization

extension Notification.Name {
  /// Posted on the main queue after the disk manager's files have changed. Several changes are combined if that queue
  /// is busy. The object is the ``ZDCDiskManager``. ``kZDCDiskManagerChanges`` in the user info holds
  /// ``ZDCDiskManagerChanges``.
  ///
  /// ```swift
  /// let name = Notification.Name.ZDCDiskManagerChanged
  /// NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) { notification in
  ///   let changes = notification.userInfo?[kZDCDiskManagerChanges] as? ZDCDiskManagerChanges
  ///   for nodeID in changes?.changedNodeIDs ?? [] { refreshRow(nodeID) }
  /// }
  /// ```
  public static let ZDCDiskManagerChanged = Notification.Name("ZDCDiskManagerChanged")
}

/// The key of ``ZDCDiskManagerChanges`` in a notification's user info.
public let kZDCDiskManagerChanges = "changes"

/// The owners whose files were added, changed or removed. Deleted nodes, which lose all files, are not named.
///
/// ```swift
/// let observer = NotificationCenter.default.addObserver(
///   forName: .ZDCDiskManagerChanged, object: nil, queue: nil
/// ) { notification in
///   let changes = notification.userInfo?[kZDCDiskManagerChanges] as? ZDCDiskManagerChanges
///   for nodeID in changes?.changedNodeIDs ?? [] { refreshRow(nodeID) }
/// }
/// ```
public struct ZDCDiskManagerChanges: Sendable, Hashable {
  /// Nodes whose data or thumbnail changed.
  public var changedNodeIDs: Set<String> { changedNodeData.union(changedNodeThumbnails) }
  /// Nodes whose data was stored, changed or removed, by ``ZDCNode/uuid``.
  public package(set) var changedNodeData: Set<String> = []
  /// Nodes whose thumbnail was stored, changed or removed, by ``ZDCNode/uuid``.
  public package(set) var changedNodeThumbnails: Set<String> = []
  /// Users of whom an avatar was stored, changed or removed.
  public package(set) var changedUsersIDs: Set<String> = []

  package mutating func insert(_ owner: DiskOwner) {
    switch owner.kind {
    case .nodeData: changedNodeData.insert(owner.id)
    case .nodeThumbnail: changedNodeThumbnails.insert(owner.id)
    case .userAvatar: changedUsersIDs.insert(owner.id)
    }
  }

  package mutating func formUnion(_ other: ZDCDiskManagerChanges) {
    changedNodeData.formUnion(other.changedNodeData)
    changedNodeThumbnails.formUnion(other.changedNodeThumbnails)
    changedUsersIDs.formUnion(other.changedUsersIDs)
  }
}

/// Changes that a reader has not taken yet, as one value: a slow reader misses none and delays no other.
final class PendingDiskChanges: Sendable {
  private let pending = Mutex(ZDCDiskManagerChanges())

  /// - Returns: whether there were none before, so that a reader must be scheduled.
  @discardableResult
  package func add(_ changes: ZDCDiskManagerChanges) -> Bool {
    pending.withLock { pending in
      defer { pending.formUnion(changes) }
      return pending == ZDCDiskManagerChanges()
    }
  }

  package func take() -> ZDCDiskManagerChanges? {
    pending.withLock { pending in
      defer { pending = ZDCDiskManagerChanges() }
      return pending == ZDCDiskManagerChanges() ? nil : pending
    }
  }
}
