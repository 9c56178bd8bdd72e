package import Foundation
package import ZDCTreesystem

/// A delegate that receives downloads whose requesting process has ended.
package protocol BackgroundDownloadDelegate: Sendable {
  func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withComponents components: ZDCNodeMetaComponents,
    header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?)

  func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile)
}
