// swift-format-ignore-file
// Printed as in the document, spaces included.

import Dispatch
import Foundation
import ZeroDarkCloud

// Seed 001, the README of ZeroDarkTodo. As in Seed000.swift.

final class Seed001: ZeroDarkCloudDelegate {
  let localUserID: String
  let list: List
  let myObject = MyObject()
  nonisolated(unsafe) var zdc: ZeroDarkCloud!
  nonisolated(unsafe) var kind = Kind.object

  /// The file with a task's image, and the data that downloads inside callbacks returned.
  nonisolated(unsafe) var imageFile = URL(fileURLWithPath: "/tmp/image.jpg")
  let downloaded = AsyncStream.makeStream(of: String.self)

  enum Kind { case object, file, promise }

  init(localUserID: String, list: List) {
    self.localUserID = localUserID
    self.list = list
  }

  private func imageURL() -> URL { imageFile }

  func creatingTheNodeOfAList(zdc: ZeroDarkCloud, databaseConnection: ZDCDatabaseConnection) {
    let list = self.list
    databaseConnection.asyncReadWrite {(transaction) in

      // Get a reference to the cloud of the correct localUser.
      // (The ZeroDarkCloud framework supports multiple localUser's.)
      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: self.localUserID) {
        // Create the treesystem path for our List,
        // which is just: /listID
        // (A treesystem path is basically just an array of strings.)
        let treesystemPath = ZDCTreesystemPath(pathComponents: [ list.uuid ])
        do {
          // Tell the framework to create the node.
          // It will ask the ZeroDarkCloudDelegate for the node's
          // content later, when it's ready to upload the node.
          let node = try cloudTransaction.createNode(with: treesystemPath)
          _ = node
        } catch {
          print("Error creating node for list: \(error)")
        }
      }
    }
  }

  /// ZeroDarkCloudDelegate function:
  /// ZeroDark is asking us to supply the data for a node.
  /// This is the data that will get uploaded to the cloud
  /// (after ZeroDark encrypts it).
  // Mended: three answers, which the page shows one after the other.
  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData {
    switch kind {
    case .object:
      // If you want to store a serialized object in the cloud,
      // it might look something like this:
      let data = myObject.serializeAsJSON()
      return ZDCData(data: data)
    case .file:
      // If you want to store a file in the cloud,
      // it might look like this:
      let fileURL = self.imageURL()
      return ZDCData(cleartextFileURL: fileURL)
    case .promise:
      // Or maybe you need to run an asynchronous task
      // in order to generate the data to be stored in the cloud.
      // Mended: the promise is passed to its closure, which cannot capture the promise that it initialises.
      let promise = ZDCDataPromise() { promise in
        let data = someSlowTask()
        promise.fulfill(ZDCData(data: data))
      }
      return ZDCData(promise: promise)
    }
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {}

  /// ZeroDarkCloudDelegate:

  func didDiscoverModifiedNode(_ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    // add code here
  }

  func didDiscoverMovedNode(_ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    // add code here
  }

  func didDiscoverDeletedNode(_ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: YapDatabaseReadWriteTransaction) {
    // add code here
  }

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func downloading(node: ZDCNode) {
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    options.canDownloadWhileInBackground = true

    // Mended: the parenthesis that the page lost.
    zdc.downloadManager?.downloadNodeData( node,
                                  options: options)
    {(cloudDataInfo: ZDCCloudDataInfo?, cryptoFile: ZDCCryptoFile?, error: Error?) in

     // download complete
    }
  }

  // The page leaves this to the reader. Called inside the callback's transaction.
  private func downloadNode(_ node: ZDCNode, at path: ZDCTreesystemPath) {
    zdc.downloadManager?.downloadNodeData(node, completionQueue: .global()) { [downloaded] _, file, error in
      let cleartext = file.flatMap { try? ZDCFileConversion.decryptCryptoFile(intoMemory: $0) }
      if let file { try? FileManager.default.removeItem(at: file.fileURL) }
      downloaded.continuation.yield(cleartext.map { String(decoding: $0, as: UTF8.self) } ?? "\(error as Any)")
    }
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    guard let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID) else {
      return
    }
    cloudTransaction.markNodeAsNeedsDownload(node.uuid, components: .all)
    downloadNode(node, at: path)
  }

  func didReconnectToInternet() {
    // When we reconnect to Internet, we can enumerate the list
    // of nodes that are marked as "needs download".
  }

  /// ZeroDarkCloudDelegate:

  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {
    // Add code here if you want to store a thumbnail for the node.
    // The thumbnail gets stored alongside the node's data,
    // and can be downloaded indepedently.
    return nil
  }

  func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {
    // Add code here if you want to store additional metadata for the node.
    // The metadata gets stored alongside the node's data,
    // and can be downloaded independently.
    return nil
  }

  func downloadingMetadata(node: ZDCNode, options: ZDCDownloadOptions) {
    let comps: ZDCNodeMetaComponents = [.metadata]
    zdc.downloadManager!.downloadNodeMeta( node,
                               components: comps,
                                  options: options)
    {(cloudDataInfo: ZDCCloudDataInfo?, metadata: Data?, thumbnail: Data?, error: Error?) in
      // data downloaded & decrypted for you
    }
  }

  func theThumbnailManager() -> ThumbnailManager? { zdc.imageManager }

  func tagging(cloudTransaction: ZDCCloudTransaction, node: ZDCNode, fileURL url: URL) -> Any? {
    let fileURL = url
    // Setting a tag
    cloudTransaction.setTag(fileURL, forNodeID: node.uuid, withIdentifier: "url")

    do {
      // Getting a tag
      let fileURL = cloudTransaction.tag(forNodeID: node.uuid, withIdentifier: "url")
      return fileURL
    }
  }
}
