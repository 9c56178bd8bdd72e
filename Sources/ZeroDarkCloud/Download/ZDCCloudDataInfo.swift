public import Foundation

/// What the verified record says about a node's content in the cloud (PROTOCOL 3.13).
public struct ZDCCloudDataInfo: Sendable, Hashable {
  public let dataSize: UInt64
  public let metadataSize: UInt64
  public let thumbnailSize: UInt64
  /// Changes with the thumbnail; nil without one.
  public let thumbnailTag: String?
  /// Changes with each version of the content.
  public let eTag: String
  /// When the server received this version, by its clock.
  public let lastModified: Date

  package init(
    dataSize: UInt64, metadataSize: UInt64, thumbnailSize: UInt64, thumbnailTag: String?, eTag: String,
    lastModified: Date
  ) {
    self.dataSize = dataSize
    self.metadataSize = metadataSize
    self.thumbnailSize = thumbnailSize
    self.thumbnailTag = thumbnailTag
    self.eTag = eTag
    self.lastModified = lastModified
  }
}
