import Foundation
import ZeroDarkCloud

/// The examples of the article "Sharing branches", as an app would have them.
final class SharingBranchesArticle: Sendable {
  struct Invitation: Codable, Sendable {
    var title: String
    var cloudID: String
    var cloudPath: String
  }

  struct Notice: Codable, Sendable {
    var text: String
  }

  let zdc: ZeroDarkCloud

  init(zdc: ZeroDarkCloud) { self.zdc = zdc }

  func invite(_ bob: ZDCUser, to list: ZDCNode, _ cloud: ZDCCloudTransaction) throws {
    let item = ZDCShareItem()
    item.addPermission(.read)
    item.addPermission(.write)
    let operations = cloud.recursiveAddShareItem(item, forUserID: bob.uuid, nodeID: list.uuid)
    let message = try cloud.sendMessage(toRecipients: [bob], withDependencies: operations)
    cloud.setTag(list.uuid, forNodeID: message.uuid, withIdentifier: "listNodeID")
  }

  func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: message.localUserID),
      let listID = cloud.tag(forNodeID: message.uuid, withIdentifier: "listNodeID") as? String,
      let list = cloud.node(id: listID), let invite = cloud.graftInvite(for: list)
    else { return nil }
    let invitation = Invitation(
      title: list.name ?? "", cloudID: invite.cloudID, cloudPath: invite.cloudPath.path())
    return ZDCData(data: try JSONEncoder().encode(invitation))
  }

  func accept(_ invitation: Invitation, from sender: ZDCUser, _ cloud: ZDCCloudTransaction) throws -> ZDCNode? {
    guard let cloudPath = ZDCCloudPath(path: invitation.cloudPath) else { return nil }
    let path = ZDCTreesystemPath(pathComponents: [invitation.title])
    return try cloud.graftNode(
      withLocalPath: cloud.conflictFreePath(path), remoteCloudPath: cloudPath, remoteCloudID: invitation.cloudID,
      remoteUser: sender)
  }

  func share(_ task: ZDCNode, in list: ZDCTreesystemPath, _ cloud: ZDCCloudTransaction) throws -> ZDCNode {
    try cloud.moveNode(task, to: cloud.conflictFreePath(list.appendingComponent(task.name ?? "")))
  }

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    guard conflict == .graft_DstNodeNotReadable else { return }
    let notice = Notice(text: "You no longer have access to \(path.nodeName).")
    transaction.setObject(notice, forKey: node.cloudID, inCollection: "notices")
  }
}
