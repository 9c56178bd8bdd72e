/// The kind of conflict, with the actions that the app can take.
public enum ZDCNodeConflict: String, Sendable, Hashable, CaseIterable {
  /// Another node in the cloud has taken the path of this node, which was not uploaded yet.
  ///
  /// The app may rename, move or delete the node in this call. Otherwise the framework renames it to "Name 2" and calls
  /// `didDiscoverMovedNode`.
  case path
  /// Another device changed the content that a queued upload is based on. The upload is held.
  ///
  /// The app downloads the newest version, merges `pendingChangesets(forNodeID:)` into it and calls
  /// `didMergeData(withETag:forNodeID:)`. Alternatively, it accepts the cloud's version with
  /// `skipDataUploads(forNodeID:)`.
  case data
  /// The owner of a grafted node closed their account. The pointer is deleted next.
  case graft_DstUserAccountDeleted
  /// A grafted node is no longer shared with this user. The pointer is deleted next.
  case graft_DstNodeNotReadable
  /// A grafted node no longer exists. The pointer is deleted next.
  case graft_DstNodeNotFound
}
