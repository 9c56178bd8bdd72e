internal import Foundation
internal import ZDCCrypto
package import ZDCProtocol
package import ZDCTreesystem

// From the framework's rows to the API's values.

extension ZDCReadTransaction {
  /// The API's value for a row. A pointer that is followed is shown as the node that it points to.
  package func zdcNode(_ stored: NodeRow) throws -> ZDCNode {
    let row = try shown(stored)
    let zone = try cloudState.facts(ofZone: row.zone)
    var node = ZDCNode(
      uuid: row.uuid, localUserID: zone.localUserID, treeID: zone.row.appTreeID, nodeID: row.nodeID)
    node.shareList = zone.shareList
    node.burnDate = row.burnMs.map(Date.init(ms:))
    node.quarantine = row.quarantine
    node.isPointer = row.pointer != nil
    let place = try place(of: row)
    if let parent = place.parent {
      node.parentID = try cloudState.uuid(ofParent: parent)
      node.name = String(decoding: place.name, as: UTF8.self)
    } else {
      node.trunk = zone.trunk
    }
    node.anchor = zone.row.owner.map { owner in
      ZDCNodeAnchor(userID: owner.text, treeID: zone.row.appTreeID, zoneRoot: zone.row.zone.root.text)
    }
    if let message = row.unused, let received = message.received {
      node.senderID = received.sender.text
      if zone.trunk == .inbox { node.isRead = message.isRead }
    }
    if let cloud = row.cloud { node.take(cloud) }
    if let content = row.content { node.take(content) }
    return node
  }

  /// Where the app sees the row.
  package func zdcPath(_ row: NodeRow) throws -> ZDCTreesystemPath {
    let (top, path) = try ancestry(of: row)
    let zone = try cloudState.facts(ofZone: top.zone)
    let names = try path.map { String(decoding: try place(of: $0).name, as: UTF8.self) }
    return ZDCTreesystemPath(pathComponents: zone.prefix + names, trunk: zone.trunk)
  }
}

extension ZDCNode {
  fileprivate mutating func take(_ cloud: NodeRow.RemoteState) {
    isUploaded = true
    eTag_rcrd = NodeRecord.eTag(cloud.recordHash)
    lastModified_rcrd = Date(serverMs: cloud.receivedMs)
  }

  fileprivate mutating func take(_ content: NodeRow.RemoteContent) {
    let sizes = content.secrets.sizes
    let tag = content.secrets.thumbnailTag
    eTag_data = content.content.eTag
    lastModified_data = Date(serverMs: content.receivedMs)
    cloudDataInfo = ZDCCloudDataInfo(
      dataSize: sizes.data, metadataSize: UInt64(sizes.metadata), thumbnailSize: UInt64(sizes.thumbnail),
      thumbnailTag: tag == .zero ? nil : tag.text, eTag: content.content.eTag, lastModified: lastModified_data)
  }
}

extension NodeRecord {
  /// The record's version as the API names it.
  package static func eTag(_ hash: RecordHash) -> String {
    Bytes16<RecordHashRole>(prefixOf: hash).text
  }
}

extension Date {
  package init(ms: UInt64) {
    self.init(timeIntervalSince1970: Double(ms) / 1_000)
  }

  /// Nil for 0: the server's clock is not known.
  package init?(serverMs: UInt64) {
    guard serverMs > 0 else { return nil }
    self.init(ms: serverMs)
  }

  /// Milliseconds since 1970; dates before count as 1970.
  package var ms: UInt64 {
    let value = (timeIntervalSince1970 * 1_000).rounded()
    return value > 0 && value < 0x1p63 ? UInt64(value) : 0
  }
}

/// The uuid of a trunk's root.
package func trunkUUID(localUserID: String, treeID: String, trunk: Trunk) -> String {
  ZDCNode.uuid(forLocalUserID: localUserID, treeID: treeID, trunk: ZDCTreesystemTrunk(trunk))
}
