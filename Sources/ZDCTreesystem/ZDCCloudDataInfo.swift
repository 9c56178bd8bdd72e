public import Foundation

/// The sections of a node's content in the cloud, known without a download: they come with the node's record.
public struct ZDCCloudDataInfo: Sendable, Hashable, Codable {
  /// Names this version of the content; see ``ZDCNode/eTag_data``.
  public let eTag: String
  /// When the server took it; nil if that is not known.
  public let lastModified: Date?
  public let metadataSize: UInt64
  public let thumbnailSize: UInt64
  public let dataSize: UInt64
  /// Changes when the thumbnail does; nil without a thumbnail.
  public let thumbnailTag: String?

  public init(
    dataSize: UInt64, metadataSize: UInt64, thumbnailSize: UInt64, thumbnailTag: String?, eTag: String,
    lastModified: Date?
  ) {
    self.dataSize = dataSize
    self.metadataSize = metadataSize
    self.thumbnailSize = thumbnailSize
    self.thumbnailTag = thumbnailTag
    self.eTag = eTag
    self.lastModified = lastModified
  }
}
