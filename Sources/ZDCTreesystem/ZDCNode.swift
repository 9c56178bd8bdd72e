public import Foundation
package import ZDCProtocol

/// A node's metadata in the treesystem: name, location, access, versions. The content belongs to the app.
///
/// A node is a value: reading returns a copy, and a changed copy takes effect once it is passed to `modifyNode`. Apps
/// link nodes to their own objects instead of subclassing.
///
/// ```swift
/// guard var node = cloud.node(path: path) else { return }
/// node.name = "Holiday"
/// try cloud.modifyNode(node)
/// ```
///
/// ## Topics
/// ### Identity
/// - ``uuid``
/// - ``cloudID``
/// ### Versions
/// - ``isUploaded``
/// - ``eTag_data``
/// - ``lastModified``
public struct ZDCNode: Sendable, Hashable, Codable, Identifiable {
  /// Identifies the node on this device. It is generated locally, never sent, and stable for as long as the node is on
  /// this device.
  public let uuid: String
  /// The user in whose tree the node is.
  public let localUserID: String
  /// The app's name for the tree, as in `ZDCConfig(primaryTreeID:)`.
  public package(set) var treeID: String
  /// The parent's ``uuid``; nil for the root of a trunk. Change it and call `modifyNode` to move the node.
  public var parentID: String?
  /// Nil for the root of a trunk. Change it and call `modifyNode` to rename the node.
  ///
  /// ```swift
  /// var draft = ZDCNode(localUserID: user.uuid)
  /// draft.parentID = folder.uuid
  /// draft.name = "letter.txt"
  /// try cloud.insertNode(draft)
  /// ```
  public var name: String?
  /// The effective share list of the node's zone.
  public var shareList: ZDCShareList
  /// When the server destroys the content.
  public var burnDate: Date?
  /// The verified sender of a message, also after the user has moved it out of the inbox. Nil after another member of a
  /// shared branch has changed the node.
  ///
  /// ```swift
  /// if let senderID = node.senderID { show([cloud.user(id: senderID)?.displayName ?? "unknown"]) }
  /// ```
  public package(set) var senderID: String?
  /// Whether the user has read a received message, on any device; nil for other nodes. `markAsRead(_:_:)` changes it.
  ///
  /// ```swift
  /// let unread = try cloud.children(ofNodeID: inbox.uuid).filter { $0.isRead == false }
  /// ```
  public package(set) var isRead: Bool?
  /// Whether the server has the node.
  public package(set) var isUploaded: Bool
  /// The version of the record in the cloud; nil before the first upload.
  public package(set) var eTag_rcrd: String?
  /// The version of the content in the cloud; nil if there is none.
  ///
  /// ```swift
  /// let isCurrent = session.diskManager.nodeData(node)?.eTag == node.eTag_data
  /// ```
  public package(set) var eTag_data: String?
  /// When the server received the record.
  public package(set) var lastModified_rcrd: Date?
  /// When the server received the content.
  public package(set) var lastModified_data: Date?
  /// Sizes of the content's sections; nil without content.
  ///
  /// ```swift
  /// show([(node.cloudDataInfo?.dataSize ?? 0).formatted(.byteCount(style: .file))])
  /// ```
  public package(set) var cloudDataInfo: ZDCCloudDataInfo?
  /// Whether it points to a node in another user's tree.
  public package(set) var isPointer: Bool
  /// The tree of another user that the node belongs to; nil in the local user's own trees.
  public package(set) var anchor: ZDCNodeAnchor?
  /// Set for the root of a trunk.
  public package(set) var trunk: ZDCTreesystemTrunk?
  /// Why the newest version in the cloud could not be opened. The last valid version is shown instead.
  ///
  /// ```swift
  /// if let code = node.quarantine { show(["The newest version cannot be opened (\(code))."]) }
  /// ```
  public package(set) var quarantine: String?
  private var identifier: CodedNodeID

  /// Creates a node for `insertNode`, with a random ``uuid`` and ``cloudID``. Set ``parentID`` and ``name``.
  ///
  /// ```swift
  /// var node = ZDCNode(localUserID: user.uuid)
  /// node.parentID = folder.uuid
  /// node.name = "beach.jpg"
  /// try cloud.insertNode(node)
  /// ```
  public init(localUserID: String) {
    self.init(uuid: UUID().uuidString, localUserID: localUserID, treeID: "", nodeID: .random())
  }

  package init(uuid: String, localUserID: String, treeID: String, nodeID: NodeID) {
    self.uuid = uuid
    self.localUserID = localUserID
    self.treeID = treeID
    shareList = ZDCShareList()
    isUploaded = false
    isPointer = false
    identifier = CodedNodeID(value: nodeID)
  }

  /// The same as ``uuid``.
  public var id: String { uuid }

  /// Identifies the node in the cloud, for all users with access. It is set at creation; ``isUploaded`` is true
  /// once the server has the node.
  ///
  /// Content that refers to another node stores this ID, because a ``uuid`` means something on one device only.
  ///
  /// ```swift
  /// let invitation = Invitation(title: "Groceries", cloudID: node.cloudID, cloudPath: invite.cloudPath.path())
  /// ```
  public var cloudID: String { identifier.value.text }

  /// The later of ``lastModified_rcrd`` and ``lastModified_data``.
  public var lastModified: Date? {
    guard let record = lastModified_rcrd, let data = lastModified_data else {
      return lastModified_rcrd ?? lastModified_data
    }
    return max(record, data)
  }

  package var nodeID: NodeID {
    get { identifier.value }
    set { identifier.value = newValue }
  }
}

/// The root of a trunk: an ordinary value whose ``ZDCNode/trunk`` is set.
public typealias ZDCTrunkNode = ZDCNode

extension ZDCNode {
  /// Returns the ``uuid`` of a trunk's root: `{localUserID}|{treeID}|home`.
  ///
  /// No database is read, so a node can be placed at the top of a tree outside of a transaction:
  ///
  /// ```swift
  /// var node = ZDCNode(localUserID: user.uuid)
  /// node.parentID = ZDCNode.uuid(forLocalUserID: user.uuid, treeID: zdc.primaryTreeID, trunk: .home)
  /// node.name = "Photos"  // will be home:/Photos
  /// ```
  public static func uuid(
    forLocalUserID localUserID: String, treeID: String, trunk: ZDCTreesystemTrunk
  ) -> String {
    "\(localUserID)|\(treeID)|\(trunk.rawValue)"
  }
}

/// An ID that is coded as its text.
private struct CodedNodeID: Sendable, Hashable, Codable {
  var value: NodeID

  init(value: NodeID) {
    self.value = value
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = NodeID(text: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a node's id")
    }
    self.value = value
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(value.text)
  }
}
