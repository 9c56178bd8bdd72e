package import Foundation
internal import Synchronization
package import ZDCTransfers
package import ZDCTreesystem

/// The app's delegate, which may be replaced while managers hold it.
package final class DelegateBox: Sendable {
  private let current: Mutex<any ZeroDarkCloudDelegate>

  package init(_ delegate: any ZeroDarkCloudDelegate) {
    current = Mutex(delegate)
  }

  package var value: any ZeroDarkCloudDelegate {
    get { current.withLock { $0 } }
    set { current.withLock { $0 = newValue } }
  }
}

extension DelegateBox: BackgroundDownloadDelegate {
  package func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withComponents components: ZDCNodeMetaComponents,
    header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?
  ) {
    value.didBackgroundDownloadNodeMeta(
      node, at: path, withComponents: components, header: header, metadata: metadata, thumbnail: thumbnail)
  }

  package func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile
  ) {
    value.didBackgroundDownloadNodeData(node, at: path, withCryptoFile: cryptoFile)
  }
}
