/// The roles of 16-byte and 32-byte values. They are empty and exist only for the compiler.
public enum UserRole {}
public enum TreeRole {}
public enum NodeRole {}
public enum BlobRole {}
public enum NameTagRole {}
public enum ThumbnailTagRole {}
public enum DeviceRole {}
public enum LookupRole {}
public enum LinkHashRole {}
public enum KeyringHashRole {}
public enum RecordHashRole {}
public enum CommitHashRole {}
public enum ACLHashRole {}
public enum GrantHashRole {}
public enum ContentRootRole {}
public enum StateRootRole {}
public enum KeyCommitmentRole {}
public enum TransparencyRootRole {}

/// The hash of a user's genesis link (PROTOCOL 3.2).
public typealias UserID = Bytes32<UserRole>
/// The hash of owner, trunk and the app's tree name (PROTOCOL 3.5).
public typealias TreeID = Bytes32<TreeRole>
/// 16 random bytes chosen by the client; never reused inside a tree.
public typealias NodeID = Bytes16<NodeRole>
/// 16 random bytes chosen by the client for one content blob.
public typealias BlobID = Bytes16<BlobRole>
/// The keyed tag of a folded name (PROTOCOL 3.5).
public typealias NameTag = Bytes16<NameTagRole>
public typealias ThumbnailTag = Bytes16<ThumbnailTagRole>
public typealias DeviceID = Bytes16<DeviceRole>
/// The server's index for "log in with words only".
public typealias LookupID = Bytes16<LookupRole>
public typealias LinkHash = Bytes32<LinkHashRole>
public typealias KeyringHash = Bytes32<KeyringHashRole>
public typealias RecordHash = Bytes32<RecordHashRole>
public typealias CommitHash = Bytes32<CommitHashRole>
public typealias ACLHash = Bytes32<ACLHashRole>
public typealias GrantHash = Bytes32<GrantHashRole>
public typealias ContentRoot = Bytes32<ContentRootRole>
public typealias StateRoot = Bytes32<StateRootRole>
public typealias KeyCommitment = Bytes32<KeyCommitmentRole>
public typealias TransparencyRoot = Bytes32<TransparencyRootRole>

/// A zone: the subtree below `root` with one access list and one commit log (PROTOCOL 3.5).
public struct ZoneID: Hashable, Comparable, Sendable {
  public let tree: TreeID
  public let root: NodeID

  public init(tree: TreeID, root: NodeID) {
    self.tree = tree
    self.root = root
  }

  /// Creates the zone of a trunk's root, whose node ID is the start of the tree's ID.
  public init(trunkOf tree: TreeID) {
    self.init(tree: tree, root: NodeID(prefixOf: tree))
  }

  public static func < (a: ZoneID, b: ZoneID) -> Bool {
    (a.tree, a.root) < (b.tree, b.root)
  }
}

/// The four trunks of an app's tree (PROTOCOL 3.5).
public enum Trunk: UInt8, Sendable, CaseIterable {
  case home = 1
  case prefs = 2
  case outbox = 3
  case inbox = 4
}

extension TreeID {
  /// `treeID = H("tree", owner ‖ u8 trunk ‖ v16 appTreeID)`.
  public static func derive(owner: UserID, trunk: Trunk, appTreeID: String) -> TreeID {
    var writer = ByteWriter()
    writer.append(owner)
    writer.append(trunk.rawValue)
    writer.append16(Array(appTreeID.utf8))
    return TreeID(labelledHash: "tree", writer.bytes)
  }
}
