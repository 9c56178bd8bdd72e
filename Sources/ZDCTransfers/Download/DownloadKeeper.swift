internal import Foundation
package import ZDCTreesystem

/// Takes over what was downloaded with `cacheToDiskManager` or `savePersistentlyToDiskManager`: the disk manager.
///
/// Called once for each request, off every lock and transaction. An error fails the request.
protocol DownloadKeeper: Sendable {
  /// - Parameter file: a file of the keeper's own; it may be renamed.
  /// - Returns: the file as the caller gets it.
  func keep(_ file: ZDCCryptoFile, of content: DownloadedContent, isPersistent: Bool) async throws -> ZDCCryptoFile

  /// - Parameters:
  ///   - thumbnail: nil if the content has none, which is worth remembering too.
  func keepThumbnail(_ thumbnail: Data?, of content: DownloadedContent, isPersistent: Bool) async throws
}

/// Which version of which node's content something belongs to.
package struct DownloadedContent: Sendable {
  package let localUserID: String
  package let nodeID: String
  package let info: ZDCCloudDataInfo
}
