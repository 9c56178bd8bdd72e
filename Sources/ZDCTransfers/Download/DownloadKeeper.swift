internal import Foundation
package import ZDCTreesystem

/// The keeper of downloads with `cacheToDiskManager` or `savePersistentlyToDiskManager`: the disk manager.
///
/// Called once per request, outside every lock and transaction. An error fails the request.
protocol DownloadKeeper: Sendable {
  /// - Parameter file: a file that belongs to the keeper, which may rename it.
  /// - Returns: the file to hand to the caller.
  func keep(_ file: ZDCCryptoFile, of content: DownloadedContent, isPersistent: Bool) async throws -> ZDCCryptoFile

  /// - Parameters:
  ///   - thumbnail: nil if the content has none, which is stored too.
  func keepThumbnail(_ thumbnail: Data?, of content: DownloadedContent, isPersistent: Bool) async throws
}

/// The node and version that downloaded content belongs to.
package struct DownloadedContent: Sendable {
  package let localUserID: String
  package let nodeID: String
  package let info: ZDCCloudDataInfo
}
