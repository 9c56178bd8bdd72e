import Foundation
import ZeroDarkCloud

/// The examples of the article "Push", as an app would have them.
final class PushArticle: Sendable {
  struct Photo: Codable, Sendable { var smallPicture = Data() }
  struct Renderer: Sendable {
    func export(_ task: Task) async throws -> Data { Data() }
  }

  let zdc: ZeroDarkCloud
  let localUserID: String

  init(zdc: ZeroDarkCloud, localUserID: String) {
    self.zdc = zdc
    self.localUserID = localUserID
  }

  func creating(_ cloud: ZDCCloudTransaction, _ parentPath: ZDCTreesystemPath) throws -> ZDCNode {
    let node = try cloud.createNode(withPath: parentPath.appendingComponent("soap"))
    return node
  }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    guard let task = cloud?.linkedObject(forNodeID: node.uuid) as? Task else { throw ZDCError(.noContent) }
    return ZDCData(data: try JSONEncoder().encode(task))
  }

  func sources(_ url: URL, _ file: ZDCCryptoFile, _ renderer: Renderer, _ task: Task) -> [ZDCData] {
    [
      ZDCData(cleartextFileURL: url),
      ZDCData(cryptoFile: file),
      ZDCData { try await renderer.export(task) },
    ]
  }

  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData? {
    let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    guard let photo = cloud?.linkedObject(forNodeID: node.uuid) as? Photo else { return nil }
    return ZDCData(data: photo.smallPicture)
  }

  func changing(_ connection: ZDCDatabaseConnection, taskID: String) async throws {
    let (zdc, localUserID) = (zdc, localUserID)
    try await connection.write { transaction in
      guard
        let cloud = zdc.cloudTransaction(transaction, forLocalUserID: localUserID),
        let nodeID = cloud.linkedNodeID(forKey: taskID, inCollection: "tasks"),
        var task = cloud.linkedObject(forNodeID: nodeID) as? Task
      else { return }
      task.title = "Buy oat milk"
      let changeset = try task.changeset()
      transaction.setObject(task, forKey: taskID, inCollection: "tasks")
      cloud.queueDataUpload(forNodeID: nodeID, withChangeset: changeset)
    }
  }

  func renaming(_ cloud: ZDCCloudTransaction, _ node: ZDCNode, _ newParentPath: ZDCTreesystemPath) throws {
    var renamed = node
    renamed.name = "Soap and towels"
    try cloud.modifyNode(renamed)
    try cloud.moveNode(node, to: newParentPath.appendingComponent("soap"))
    try cloud.delete(node)
  }

  func ordering(_ cloud: ZDCCloudTransaction, message: ZDCNode, picture: ZDCNode) throws {
    for var operation in cloud.addedOperations(forNodeID: message.uuid) {
      operation.addDependencies(cloud.pendingOperations(forNodeID: picture.uuid))
      operation.priority = 100
      try cloud.modifyOperation(operation)
    }
  }

  func waiting(_ cloud: ZDCCloudReadTransaction, _ node: ZDCNode) {
    for operation in cloud.explain(nodeID: node.uuid)?.operations ?? [] {
      print("\(operation.kind): \(operation.reason), until \(operation.unblockedBy)")
    }
  }

  func pausing() async throws {
    try await zdc.syncManager?.pausePush(forLocalUserID: localUserID)
  }
}
