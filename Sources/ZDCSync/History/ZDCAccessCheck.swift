internal import ZDCClientStore
internal import ZDCProtocol

/// The result of trying a removed member's keys on everything that was written to a tree after the removal.
///
/// Nothing should open. Something does if a device wrote it under a key that the member had: one that does not follow
/// the rules, or, after a member has left, one that wrote before the tree's key was replaced.
///
/// ```swift
/// let check = try await session.syncManager.verifyRemoval(
///   ofUserID: bobsUserID, forNodeID: list.uuid, forLocalUserID: user.uuid)
/// for found in check.readable { print(found.cloudID, "in commit", found.commitNumber) }
/// ```
public struct ZDCAccessCheck: Sendable, Hashable, Codable {
  /// An object that a key of the removed member opens.
  public struct Readable: Sendable, Hashable, Codable {
    /// The kind of an object.
    public enum Kind: String, Sendable, Hashable, Codable {
      /// A node's metadata, its key, or its older keys.
      case record
      /// The tree's key in an access list.
      case accessList
      /// A node's content.
      case content
    }

    /// The kind of the object.
    public var kind: Kind
    /// ``ZDCNode/cloudID`` of the node; that of the tree's root for an access list.
    public var cloudID: String
    /// The position of the commit that wrote it in the tree's log.
    public var commitNumber: UInt64
  }

  /// The text of the removed user's ID.
  public var userID: String
  /// The position of the removing commit, which is the first one that is checked.
  public var commitNumber: UInt64
  /// The position of the last commit that was checked: the newest one that this device has verified, or the last one
  /// before the user was added again.
  public var lastCommitNumber: UInt64
  /// The generations of the tree's key that were tried, with the keys of nodes that the user could open with them.
  ///
  /// Generations that no node uses any more are deleted, so they cannot be tried.
  public var keyGenerations: [UInt32]
  /// The number of records that were tried.
  public var recordCount = 0
  /// The number of access lists that were tried.
  public var listCount = 0
  /// The number of contents whose headers were tried.
  public var contentCount = 0
  /// The number of records and contents that the server did not send; it deletes replaced ones after some time.
  public var missingCount = 0
  /// The number of objects that a key of the user opens.
  public var readableCount = 0
  /// The first 1,000 of the objects that a key of the user opens, oldest first.
  public var readable: [Readable] = []

  /// Whether none of the keys opens anything.
  public var isPassed: Bool { readableCount == 0 }

  private static let limit = 1_000

  init(_ removal: RemovalStore.Removal, keyGenerations: [UInt32]) {
    (userID, commitNumber, lastCommitNumber) = (removal.member.text, removal.seq, removal.seq)
    self.keyGenerations = keyGenerations
  }

  mutating func note(_ kind: Readable.Kind, _ node: NodeID, at seq: UInt64) {
    readableCount += 1
    guard readable.count < Self.limit else { return }
    readable.append(Readable(kind: kind, cloudID: node.text, commitNumber: seq))
  }
}
