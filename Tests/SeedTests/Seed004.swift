// swift-format-ignore-file
// Printed as in the document, spaces included.

import Dispatch
import Foundation
import ZeroDarkCloud

// Seed 004, "Collaboration". As in Seed000.swift.

struct Invitation: Sendable {
  var receiverID: String
  var senderID: String
  var title: String
  var cloudID: String
  var cloudPath: String
}

final class Seed004: Sendable {
  nonisolated(unsafe) var zdc: ZeroDarkCloud!

  func inviting(zdc: ZeroDarkCloud, localUserID: String, bobsUserID: String, listNodeID: String) {
    zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite {(transaction) in

      if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: localUserID) {

        // Step 1: Update treesystem permissions
        // Mended: the page cut the two lines that add the item's letters.
        let shareItem = ZDCShareItem()
        shareItem.addPermission(.read)
        shareItem.addPermission(.write)

        let permsOps =
            cloudTransaction.recursiveAddShareItem(shareItem, forUserID: bobsUserID, nodeID: listNodeID)

        // Step 2: Send invitation message to Bob
        if let bob = cloudTransaction.user(id: bobsUserID) {
          do {
            let message = try cloudTransaction.sendMessage(toRecipients: [bob], withDependencies: permsOps)

            cloudTransaction.setTag(listNodeID, forNodeID: message.uuid, withIdentifier: "listNodeID")
          } catch {}
          // Invitation message is now queued
        }
      }
    }
  }

  /// ZeroDarkCloudDelegate protocol function.
  /// When the framework is ready to send the message,
  /// it will invoke this function to obtain the data we want to send.
  /// We can return whatever we need,
  /// and the framework handles the encryption & uploading.
  func data(forMessage message: ZDCNode, transaction: YapDatabaseReadTransaction) -> ZDCData? {

    if let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: message.localUserID),
       let listNodeID = cloudTransaction.tag(forNodeID: message.uuid, withIdentifier: "listNodeID") as? String,
       let listNode = cloudTransaction.node(id: listNodeID),
       let list = cloudTransaction.linkedObject(forNodeID: listNodeID) as? List,
       let graftInvite = cloudTransaction.graftInvite(for: listNode)
    {
      let invitation = [
        "title"     : list.title, // <= "Groceries",
        "message"   : "Hey Bob, let's tackle this holiday dinner",
        "cloudID"   : graftInvite.cloudID,
        "cloudPath" : graftInvite.cloudPath.path()
      ]

      do {
        let encoder = JSONEncoder()
          let jsonData = try encoder.encode(invitation)
        return ZDCData(data: jsonData)
      } catch {}
    }

    return nil
  }

  /// ZeroDarkCloudDelegate protocol function.
  func didSendMessage(_ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: YapDatabaseReadWriteTransaction) {

    // Our message has been sent
  }

  /// ZeroDarkCloudDelegate protocol function.
  /// Framework just discovered a new node in the cloud.
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {

     guard let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID) else {
       return
     }

     // Mended: `case .home:` for `case .home {`, and a default.
     switch path.trunk {
        case .home:
           // Discovered normal node within our treesystem
           break
        case .outbox:
           // Discovered outgoing message (sent from another device)
           break
        case .inbox:
           // Discovered incoming message (sent from another user)
           cloudTransaction.markNodeAsNeedsDownload(node.uuid, components: .all)
           // We can download it now.
           downloadNode(node, at: path)
        default:
           break
     }
  }

  private func downloadNode(_ node: ZDCNode, at path: ZDCTreesystemPath) {

     let options = ZDCDownloadOptions()
     options.cacheToDiskManager = false
     options.canDownloadWhileInBackground = true
     options.completionTag = String(describing: type(of: self))

     // Mended: the page cut the queue.
     let queue = DispatchQueue.global()

     zdc.downloadManager!.downloadNodeData( node,
                                   options: options,
                           completionQueue: queue)
     { (cloudDataInfo: ZDCCloudDataInfo?, cryptoFile: ZDCCryptoFile?, error: Error?) in

        if let cloudDataInfo = cloudDataInfo,
           let cryptoFile = cryptoFile
        {
           do {
             let jsonData = try ZDCFileConversion.decryptCryptoFile(intoMemory: cryptoFile)

             // Process it
             _ = (cloudDataInfo, jsonData)
           } catch {}

           // Cleanup: delete the downloaded file,
           // unless we instructed the DiskManager to manage it.
        }
     }
  }

  func accepting(zdc: ZeroDarkCloud, invitation: Invitation) {
    zdc.databaseManager?.rwDatabaseConnection.asyncReadWrite {(transaction) in

       let localUserID = invitation.receiverID
       let senderUserID = invitation.senderID

       guard
          let cloudTransaction = zdc.cloudTransaction(transaction, forLocalUserID: localUserID),
          let sender = cloudTransaction.user(id: senderUserID),
          // Mended: the page cut the code that makes the path from the message's text.
          let remoteCloudPath = ZDCCloudPath(path: invitation.cloudPath)
       else {
         return
       }

       let localPath = ZDCTreesystemPath(pathComponents: [invitation.title])
       // ^ home://Groceries

       do {
          try cloudTransaction.graftNode(withLocalPath: localPath,
                                       remoteCloudPath: remoteCloudPath,
                                         remoteCloudID: invitation.cloudID,
                                            remoteUser: sender)
       } catch {}
    }
  }
}
