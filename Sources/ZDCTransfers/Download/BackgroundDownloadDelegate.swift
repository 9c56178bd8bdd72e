package import Foundation
package import ZDCTreesystem

/// Gets what was downloaded for a process that has ended.
package protocol BackgroundDownloadDelegate: Sendable {
  func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withComponents components: ZDCNodeMetaComponents,
    header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?)

  func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile)
}
