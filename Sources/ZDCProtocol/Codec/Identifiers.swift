/// The roles of 16-byte and 32-byte values. They are empty and exist only for the compiler.
public enum UserRole {}
/// The role of ``ZDCTreeID``.
public enum TreeRole {}
/// The role of ``ZDCNodeID``.
public enum NodeRole {}
package enum BlobRole {}
package enum NameTagRole {}
package enum ThumbnailTagRole {}
package enum DeviceRole {}
package enum LookupRole {}
package enum LinkHashRole {}
package enum KeyringHashRole {}
package enum RecordHashRole {}
package enum CommitHashRole {}
package enum ACLHashRole {}
package enum GrantHashRole {}
package enum ContentRootRole {}
package enum StateRootRole {}
package enum KeyCommitmentRole {}
package enum TransparencyRootRole {}

/// The hash of a user's genesis link (PROTOCOL 3.2).
///
/// The text of one is the `uuid` of a ``ZDCUser`` or ``ZDCLocalUser``:
///
/// ```swift
/// let events = try await session.syncManager.securityEvents(localUserID: user.uuid)
/// let aboutUser = events.filter { $0.error.user == ZDCUserID(text: user.uuid) }
/// ```
public typealias ZDCUserID = Bytes32<UserRole>
/// The hash of owner, trunk and the app's tree name (PROTOCOL 3.5).
public typealias ZDCTreeID = Bytes32<TreeRole>
/// 16 random bytes chosen by the client; never reused inside a tree.
///
/// The text of one is the ``ZDCNode/cloudID`` of a node:
///
/// ```swift
/// let events = try await session.syncManager.securityEvents(localUserID: user.uuid)
/// let aboutNode = events.filter { $0.error.node == ZDCNodeID(text: node.cloudID) }
/// ```
public typealias ZDCNodeID = Bytes16<NodeRole>
// The same, as this package writes them. An app may have a type of such a name.
package typealias UserID = ZDCUserID
package typealias TreeID = ZDCTreeID
package typealias NodeID = ZDCNodeID
package typealias ZoneID = ZDCZoneID

/// 16 random bytes chosen by the client for one content blob.
package typealias BlobID = Bytes16<BlobRole>
/// The keyed tag of a folded name (PROTOCOL 3.5).
package typealias NameTag = Bytes16<NameTagRole>
package typealias ThumbnailTag = Bytes16<ThumbnailTagRole>
package typealias DeviceID = Bytes16<DeviceRole>
/// The server's index for "log in with words only".
package typealias LookupID = Bytes16<LookupRole>
package typealias LinkHash = Bytes32<LinkHashRole>
package typealias KeyringHash = Bytes32<KeyringHashRole>
package typealias RecordHash = Bytes32<RecordHashRole>
package typealias CommitHash = Bytes32<CommitHashRole>
package typealias ACLHash = Bytes32<ACLHashRole>
package typealias GrantHash = Bytes32<GrantHashRole>
package typealias ContentRoot = Bytes32<ContentRootRole>
package typealias StateRoot = Bytes32<StateRootRole>
package typealias KeyCommitment = Bytes32<KeyCommitmentRole>
package typealias TransparencyRoot = Bytes32<TransparencyRootRole>

/// A zone: the subtree below `root` with one access list and one commit log (PROTOCOL 3.5).
///
/// ```swift
/// for zone in try await session.syncManager.frozenZones(localUserID: user.uuid) {
///   if await userConfirms(zone) {
///     _ = try await session.syncManager.acceptServerState(ofZone: zone.zone, localUserID: user.uuid)
///   }
/// }
/// ```
public struct ZDCZoneID: Hashable, Comparable, Sendable {
  /// The tree that the zone is part of.
  public let tree: ZDCTreeID
  /// The node at the top of the zone.
  public let root: ZDCNodeID

  package init(tree: TreeID, root: NodeID) {
    self.tree = tree
    self.root = root
  }

  /// Creates the zone of a trunk's root, whose node ID is the start of the tree's ID.
  package init(trunkOf tree: TreeID) {
    self.init(tree: tree, root: NodeID(prefixOf: tree))
  }

  /// Orders zones by tree, then by root.
  public static func < (a: ZDCZoneID, b: ZDCZoneID) -> Bool {
    (a.tree, a.root) < (b.tree, b.root)
  }
}

extension NodeID {
  /// Returns the ID of the pointer that a split leaves in the place of the branch whose first commit is `genesis`:
  /// `H("mount", genesis)[0..16)` (PROTOCOL 3.7).
  package static func mount(ofZoneWith genesis: CommitHash) -> NodeID {
    NodeID(prefixOf: CommitHash(labelledHash: "mount", genesis.bytes))
  }

  /// Returns the ID of the pointer to a zone that takes the place of a deleted one:
  /// `H("remount", treeID ‖ zoneRoot ‖ nodeID of the deleted pointer)[0..16)` (PROTOCOL 3.7).
  package static func remount(of zone: ZoneID, after pointer: NodeID) -> NodeID {
    NodeID(prefixOf: CommitHash(labelledHash: "remount", zone.tree.bytes, zone.root.bytes, pointer.bytes))
  }
}

/// The four trunks of an app's tree (PROTOCOL 3.5).
package enum Trunk: UInt8, Sendable, CaseIterable {
  /// The app's data.
  case home = 1
  /// The user's preferences.
  case prefs = 2
  /// The user's copies of messages that they sent.
  case outbox = 3
  /// Messages of other users.
  case inbox = 4
}

extension TreeID {
  /// `treeID = H("tree", owner ‖ u8 trunk ‖ v16 appTreeID)`.
  package static func derive(owner: UserID, trunk: Trunk, appTreeID: String) -> TreeID {
    var writer = ByteWriter()
    writer.append(owner)
    writer.append(trunk.rawValue)
    writer.append16(Array(appTreeID.utf8))
    return TreeID(labelledHash: "tree", writer.bytes)
  }
}
