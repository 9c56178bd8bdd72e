import Foundation
import ZeroDarkCloud

/// The examples of the article "Progress and explain", as an app would have them.
final class ProgressArticle: Sendable {
  let zdc: ZeroDarkCloud
  let localUserID: String

  init(zdc: ZeroDarkCloud, localUserID: String) {
    self.zdc = zdc
    self.localUserID = localUserID
  }

  func show(_ file: ZDCCryptoFile?) {}
  func refresh(_ nodeID: String) {}
  func showActivity() {}
  func hideActivity() {}

  func anUpload(node: ZDCNode) {
    let progress = zdc.progressManager.dataUploadProgress(forNodeID: node.uuid)
    print("sent \(progress?.completedUnitCount ?? 0) of \(progress?.totalUnitCount ?? 0) bytes")
  }

  func uploads() {
    for nodeID in zdc.progressManager.allUploadingNodeIDs(localUserID) {
      let progress = zdc.progressManager.dataUploadProgress(forNodeID: nodeID)
      print("\(nodeID): \(Int((progress?.fractionCompleted ?? 0) * 100)) %")
    }
  }

  func aDownload(node: ZDCNode) {
    let show: @Sendable (ZDCCryptoFile?) -> Void = { _ in }
    let progress = zdc.progressManager.dataDownloadProgress(forNodeID: node.uuid, completionQueue: .main) {
      info, file, error in
      show(file)
    }
    if progress == nil { show(nil) }
  }

  func allTogether() -> Progress? {
    let all = zdc.progressManager.uploadProgress(forLocalUserID: localUserID)
    return all
  }

  func changes() async {
    for await change in zdc.progressManager.changes where change.progressType == .upload {
      refresh(change.nodeID)
    }
  }

  func engines() -> Any {
    let showActivity: @Sendable () -> Void = {}
    let hideActivity: @Sendable () -> Void = {}
    let observer = NotificationCenter.default.addObserver(
      forName: .ZDCSyncStatusChangedNotification, object: nil, queue: .main
    ) { notification in
      let info = notification.userInfo?[kZDCSyncStatusNotificationInfo] as? ZDCSyncStatusNotificationInfo
      if info?.type == .pullStarted { showActivity() }
      if info?.type == .pullStopped { hideActivity() }
    }
    return observer
  }

  func inTheBackground(node: ZDCNode) {
    let show: @Sendable (ZDCCryptoFile?) -> Void = { _ in }
    let options = ZDCDownloadOptions()
    options.canDownloadWhileInBackground = true
    zdc.downloadManager?.downloadNodeData(node, options: options, completionQueue: .main) { info, file, error in
      show(file)
    }
  }
}
