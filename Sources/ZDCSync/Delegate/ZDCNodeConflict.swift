/// What is in conflict, and what the app does about it (seed 003).
public enum ZDCNodeConflict: String, Sendable, Hashable, CaseIterable {
  /// Another node in the cloud has taken the path of this one, which was not uploaded yet.
  ///
  /// The app may rename, move or delete the node in this call. If it does not, the framework renames it to "Name 2" and
  /// calls
  /// `didDiscoverMovedNode`.
  case path
  /// Somebody else changed the content on which a queued upload is based. The upload is held.
  ///
  /// The app downloads the newest version, merges `pendingChangesets(forNodeID:)` into it and calls
  /// `didMergeData(withETag:forNodeID:)`;
  /// or it takes the cloud's version with `skipDataUploads(forNodeID:)`.
  case data
  /// The owner of a grafted node closed his account. The pointer is deleted next.
  case graft_DstUserAccountDeleted
  /// A grafted node is no longer shared with this user. The pointer is deleted next.
  case graft_DstNodeNotReadable
  /// A grafted node is gone. The pointer is deleted next.
  case graft_DstNodeNotFound
}
