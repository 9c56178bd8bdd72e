import Foundation
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A node of one of the cases that are played together.
struct SmallKey: Hashable, Sendable {
  var number: Int
  var node: SmallNode
}

/// The app of a device, which performs operations of many cases in one transaction.
struct SmallApp {
  let known: [SmallKey: String]
  let cloudIDs: [SmallKey: String]
  let transaction: ZDCReadWriteTransaction
  let cloud: ZDCCloudTransaction

  func change(_ operation: SmallOperation, _ number: Int, _ text: String) throws -> ZDCNode? {
    switch operation {
    case .edit(let label):
      let node = try node(label, number)
      transaction.setObject(
        TestContent(data: Data(text.utf8), eTag: node.eTag_data), forKey: node.uuid,
        inCollection: TestContent.collection)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    case .create(let label):
      return try Self.create("x", below: try node(label, number), text, transaction, cloud)
    case .rename(let label):
      var node = try node(label, number)
      node.name = "x"
      _ = try cloud.modifyNode(node)
    case .move(let label, let parent):
      var node = try node(label, number)
      node.parentID = try self.node(parent, number).uuid
      _ = try cloud.modifyNode(node)
    case .delete(let label): _ = try cloud.delete(try node(label, number))
    case .replace(let label):
      let old = try node(label, number)
      let parent = old.parentID.flatMap { cloud.node(id: $0) }
      _ = try cloud.delete(old)
      return try Self.create(old.name ?? "", below: parent, text, transaction, cloud)
    }
    return nil
  }

  /// The nodes of a case that this device shows at or below one of them.
  func branch(of top: SmallNode, _ number: Int) -> [SmallNode] {
    let labels = Set(known.keys).union(cloudIDs.keys).filter { $0.number == number }.map(\.node)
    return labels.filter { label in
      var next = try? node(label, number)
      guard let wanted = try? node(top, number) else { return false }
      while let current = next, current.uuid != wanted.uuid { next = current.parentID.flatMap { cloud.node(id: $0) } }
      return next != nil
    }
  }

  private func node(_ label: SmallNode, _ number: Int) throws -> ZDCNode {
    let key = SmallKey(number: number, node: label)
    if let uuid = known[key], let node = cloud.node(id: uuid) { return node }
    guard let id = cloudIDs[key], let node = cloud.node(cloudID: id) else {
      throw TestFailure("\(label) is not there")
    }
    return node
  }

  static func create(
    _ name: String, below parent: ZDCNode?, _ text: String, _ transaction: ZDCReadWriteTransaction,
    _ cloud: ZDCCloudTransaction
  ) throws -> ZDCNode {
    var node = ZDCNode(localUserID: cloud.localUserID)
    (node.parentID, node.name) = (parent?.uuid, name)
    let stored = try cloud.insertNode(node)
    transaction.setObject(TestContent(text), forKey: stored.uuid, inCollection: TestContent.collection)
    return stored
  }
}
