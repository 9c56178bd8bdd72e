import Foundation
import ZeroDarkCloud

/// The examples of the article "Background transfers", as an app would have them.
final class BackgroundTransfersArticle: Sendable {
  let zdc: ZeroDarkCloud

  init(zdc: ZeroDarkCloud) {
    self.zdc = zdc
  }

  func beginBackgroundTask() -> Int { 1 }
  func endBackgroundTask(_ task: Int) {}
  func report(_ error: any Error) {}
  func unlock() throws {}
  func handleOtherSession(_ identifier: String, _ completionHandler: @escaping @Sendable () -> Void) {}
  func keep(_ file: ZDCCryptoFile, of node: ZDCNode) {}

  func request(node: ZDCNode) {
    let show: @Sendable (ZDCCryptoFile?) -> Void = { _ in }
    let options = ZDCDownloadOptions()
    options.canDownloadWhileInBackground = true
    zdc.downloadManager?.downloadNodeData(node, options: options, completionQueue: .main) { info, file, error in
      show(file)
    }
  }

  func appMovedToBackground() async {
    let task = beginBackgroundTask()
    do { try await zdc.handOverTransfers() } catch { report(error) }
    endBackgroundTask(task)
  }

  func sceneBecameActive() {
    zdc.takeBackTransfers()
  }

  func handleEvents(ofSession identifier: String, completionHandler: @escaping @Sendable () -> Void) throws {
    try unlock()
    if zdc.handleEventsForBackgroundURLSession(identifier, completionHandler: completionHandler) { return }
    handleOtherSession(identifier, completionHandler)
  }

  func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile
  ) {
    keep(cryptoFile, of: node)
  }
}
