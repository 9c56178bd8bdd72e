public import Foundation
package import ZDCProtocol

/// What the treesystem knows of a node: name, place, access, versions. Not the content, which is the app's (seed 000).
///
/// A value: reading gives a copy, and a changed copy counts once it is handed to `modifyNode`. Apps link nodes to their
/// own objects
/// instead of subclassing.
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
  /// Names the node on this device. Made here, never sent, and kept for as long as the node is here.
  public let uuid: String
  public let localUserID: String
  /// The app's name for the tree, as in `ZDCConfig(primaryTreeID:)`.
  public package(set) var treeID: String
  /// The parent's ``uuid``; nil for the root of a trunk. Change it and call `modifyNode` to move the node.
  public var parentID: String?
  /// Nil for the root of a trunk. Change it and call `modifyNode` to rename the node.
  public var name: String?
  /// The effective list of the node's zone.
  public var shareList: ZDCShareList
  /// When the server destroys the content.
  public var burnDate: Date?
  /// Who sent it, verified; for messages.
  public package(set) var senderID: String?
  /// Whether the server has the node.
  public package(set) var isUploaded: Bool
  /// The version of the record in the cloud; nil before the first upload.
  public package(set) var eTag_rcrd: String?
  /// The version of the content in the cloud; nil if there is none.
  public package(set) var eTag_data: String?
  /// When the server took the record.
  public package(set) var lastModified_rcrd: Date?
  /// When the server took the content.
  public package(set) var lastModified_data: Date?
  /// Sizes of the content's sections; nil without content.
  public package(set) var cloudDataInfo: ZDCCloudDataInfo?
  /// Whether it stands for a node in another user's tree.
  public package(set) var isPointer: Bool
  public package(set) var anchor: ZDCNodeAnchor?
  /// Set for the root of a trunk.
  public package(set) var trunk: ZDCTreesystemTrunk?
  /// Why the newest version in the cloud could not be opened; the last good one is shown.
  public package(set) var quarantine: String?
  private var identifier: CodedNodeID

  /// A fresh node for `insertNode`, with a random ``uuid`` and ``cloudID``. Set ``parentID`` and ``name``.
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

  public var id: String { uuid }

  /// Names the node in the cloud, for everybody who has access. There from creation; ``isUploaded`` says whether the
  /// server knows it.
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
  /// The ``uuid`` of a trunk's root: `{localUserID}|{treeID}|home`.
  public static func uuid(
    forLocalUserID localUserID: String, treeID: String, trunk: ZDCTreesystemTrunk
  ) -> String {
    "\(localUserID)|\(treeID)|\(trunk.rawValue)"
  }
}

/// An id that is coded as its text.
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
