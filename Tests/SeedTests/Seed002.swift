// swift-format-ignore-file
// Printed as in the document, spaces included.

import Dispatch
import Foundation
import ZeroDarkCloud

// Document 002, "Pulling data". Its delegate methods are those of document 001. As in Seed000.swift.

final class Seed002: Sendable {
  let processed: @Sendable (Data, String) -> Void

  init(processed: @escaping @Sendable (Data, String) -> Void) { self.processed = processed }

  func downloading(zdc: ZeroDarkCloud, node: ZDCNode, nodeID: String) {
    // The app's own.
    @Sendable func processDownloadedTask(_ cleartext: Data, forNodeID nodeID: String) { processed(cleartext, nodeID) }

    let options = ZDCDownloadOptions()
    options.canDownloadWhileInBackground = true

    zdc.downloadManager!.downloadNodeData( node,
                                  options: options,
                          completionQueue: DispatchQueue.global())
    { (cloudDataInfo: ZDCCloudDataInfo?, cryptoFile: ZDCCryptoFile?, error: Error?) in

      if let cryptoFile = cryptoFile {

        do {
          // Read & decrypt the file.
          // Since this is a small file, we can just decrypt it into memory.
          // Note: We're already executing in a background thread (DispatchQueue.global).
          // So it's fine if we read from the disk in a synchronous fashion here.
          let cleartext = try ZDCFileConversion.decryptCryptoFile(intoMemory: cryptoFile)

          // Process it
          processDownloadedTask(cleartext, forNodeID: nodeID)

        } catch {}

        // Cleanup: Delete the downloaed file from disk
        // unless we asked the DiskManager to manage it.
        zdc.diskManager?.deleteFileIfUnmanaged(cryptoFile.fileURL)
      }
    }
  }

  func fetchingAThumbnail(zdc: ZeroDarkCloud, imageNode: ZDCNode, cell: Cell, taskID: String, defaultImage: UIImage) {
    let preFetch = {(image: UIImage?, willFetch: Bool) in

      // This closure is invoked BEFORE the fetchNodeThumbnail() function returns.
      cell.thumbnail.image = image ?? defaultImage
    }

    let postFetch = {(image: UIImage?, error: Error?) in

      // This closure is invoked LATER, after the download or disk-read has completed.
      if cell.taskID == taskID {
        cell.thumbnail.image = image ?? defaultImage
      } else {
        // The cell has been recycled. Ignore.
      }
    }

    zdc.imageManager?.fetchNodeThumbnail(imageNode, preFetch: preFetch, postFetch: postFetch)
  }
}
