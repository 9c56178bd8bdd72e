// swift-format-ignore-file
// Printed as in the document, spaces included.

import Dispatch
import Foundation
import ZeroDarkCloud

// Seed 000, "Pushing data". Each function holds one fragment as printed. The page cut closing braces and some lines;
// comments mark the additions. `// Mended:` marks what is invalid Swift in the original text.

final class Seed000: Sendable {
  let localUserID: String

  init(localUserID: String) { self.localUserID = localUserID }

  func creatingANode(zdc: ZeroDarkCloud) {
    let treesystemPath =
      ZDCTreesystemPath(pathComponents: [ "foo", "bar", "soap" ])

    let db = zdc.databaseManager!
    db.rwDatabaseConnection.asyncReadWrite {(transaction) in

      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: self.localUserID) {
        do {
          try cloudTransaction.createNode(withPath: treesystemPath)
        } catch {}
        // Node is now added to treesystem, and queued for upload
      }
    }
  }

  func appendingAComponent(parentPath: ZDCTreesystemPath) -> ZDCTreesystemPath {
    let treesystemPath = parentPath.appendingComponent("soap")
    return treesystemPath
  }

  func creatingAndLinking(zdc: ZeroDarkCloud, treesystemPath: ZDCTreesystemPath, taskID: String) {
    let db = zdc.databaseManager!
    db.rwDatabaseConnection.asyncReadWrite {(transaction) in

      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: self.localUserID) {

        do {
          // Create the node
          let node = try cloudTransaction.createNode(withPath: treesystemPath)

          // Link it to our own object
          try cloudTransaction.linkNodeID(node.uuid, toKey: taskID, inCollection: "tasks")

        } catch {
          print("Error creating/linking node: \(error)")
        }
      }
    }
  }

  struct LookUps: Equatable {
    var collection: String
    var key: String
    var task: Task?
    var node: ZDCNode?
  }

  func lookingUpLinks(zdc: ZeroDarkCloud, node: ZDCNode, taskID: String) -> LookUps? {
    var found: LookUps?
    let db = zdc.databaseManager!
    db.uiDatabaseConnection.read {(transaction) in

      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: self.localUserID) {

        // nodeID => {collection, key}
        // Mended: the pair is optional.
        guard let (collection, key) = cloudTransaction.linkedCollectionAndKey(forNodeID: node.uuid) else { return }

        // nodeID => myObject
        let task = cloudTransaction.linkedObject(forNodeID: node.uuid) as? Task

        // myObject => nodeID
        let node = cloudTransaction.linkedNode(forKey: taskID, inCollection: "tasks")
        found = LookUps(collection: collection, key: key, task: task, node: node)
      }
    }
    return found
  }

  func usingTags(zdc: ZeroDarkCloud, node: ZDCNode, myTask: Task) {
    let db = zdc.databaseManager!
    db.rwDatabaseConnection.asyncReadWrite {(transaction) in

      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: self.localUserID) {

        // Storing a tag
        cloudTransaction.setTag(myTask.uuid, forNodeID: node.uuid, withIdentifier: "taskID")

        // Reading a tag
        let taskID = cloudTransaction.tag(forNodeID: node.uuid, withIdentifier: "taskID")
        precondition(taskID as? String == myTask.uuid)
      }
    }
  }

  func dataFromMemory(transaction: YapDatabaseReadTransaction, listID: String, collection: String) -> ZDCData? {
    if let list = transaction.object(forKey: listID, inCollection: collection) as? List {
      do {
        let data = try list.serializeAsJSON()
        return ZDCData(data: data)
      } catch {}
    }
    return nil
  }

  private func getFileURL(forNode node: ZDCNode) -> URL? { URL(fileURLWithPath: "/tmp/\(node.uuid)") }

  func dataFromAFile(node: ZDCNode) -> ZDCData? {
    if let fileURL = self.getFileURL(forNode: node) {
      return ZDCData(cleartextFileURL: fileURL)
    }
    return nil
  }

  func dataFromACryptoFile(zdc: ZeroDarkCloud, node: ZDCNode) -> ZDCData? {
    // Mended: the export is optional.
    let export = zdc.diskManager?.nodeData(node)
    if let cryptoFile = export?.cryptoFile {
      return ZDCData(cryptoFile: cryptoFile)
    }
    return nil
  }

  func dataFromAnAsynchronousProcess() -> ZDCData {
    let promise = ZDCDataPromise()
    DispatchQueue.global(qos: .default).async {
      // Async process to generate cloud data...
      let data = ZDCData(data: Data("generated".utf8))
      promise.fulfill(data)
    }

    return ZDCData(promise: promise)
  }

  func modifyingData(zdc: ZeroDarkCloud, textView: TextView, taskID: String) {
    let newTitle = textView.text

    let db = zdc.databaseManager!
    db.rwDatabaseConnection.asyncReadWrite {(transaction) in

      // Mended: the missing comma, and `as? Task` here instead of `as! Task` at the copy.
      if var task = transaction.object(forKey: taskID, inCollection: kCollection_Tasks) as? Task {
        task = task.copy()
        task.title = newTitle
        transaction.setObject(task, forKey: taskID, inCollection: kCollection_Tasks)
      }

      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: self.localUserID),
         let nodeID = cloudTransaction.linkedNodeID(forKey: taskID, inCollection: kCollection_Tasks) {
        cloudTransaction.queueDataUpload(forNodeID: nodeID, withChangeset: nil)
      }
    }
  }

  func deletingANode(zdc: ZeroDarkCloud, node: ZDCNode) {
    let db = zdc.databaseManager!
    db.rwDatabaseConnection.asyncReadWrite {(transaction) in

      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: self.localUserID) {

        do {
          // Removes the given node from the treesystem,
          // and enqueues a delete operation to delete it from the cloud.
          try cloudTransaction.delete(node)

        } catch {}
      }
    }
  }
}

/// The delegate methods of document 000, with bodies.
final class Seed000Delegate: ZeroDarkCloudDelegate {
  /// ZeroDark is asking us to supply the data for a node.
  /// This is the data that will get uploaded to the cloud.
  /// ZeroDark handles the encryption & uploading for us.
  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData {

    // Implement me !
    return ZDCData(data: Data(path.nodeName.utf8))
  }

  /// ZeroDark just pushed our data to the cloud.
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    // ...
  }

  func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {

    return nil // or add metadata
  }

  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {

    return nil // or add thumbnail
  }

  // Not in this document.
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {}
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: YapDatabaseReadWriteTransaction
  ) {}
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}
}
