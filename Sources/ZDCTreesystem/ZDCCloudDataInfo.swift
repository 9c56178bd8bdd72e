public import Foundation

/// The sections of a node's content in the cloud. They are part of the node's record, so no download is needed.
///
/// ```swift
/// if let info = node.cloudDataInfo {
///   print("\(info.dataSize) bytes", info.thumbnailSize > 0 ? "with a thumbnail" : "")
/// }
/// ```
public struct ZDCCloudDataInfo: Sendable, Hashable, Codable {
  /// Identifies this version of the content; see ``ZDCNode/eTag_data``.
  public let eTag: String
  /// When the server received it; nil if that is not known.
  public let lastModified: Date?
  /// Size of the metadata section in bytes; 0 without one.
  public let metadataSize: UInt64
  /// Size of the thumbnail section in bytes; 0 without one.
  public let thumbnailSize: UInt64
  /// Size of the data section in bytes.
  public let dataSize: UInt64
  /// Changes when the thumbnail changes; nil without a thumbnail.
  public let thumbnailTag: String?

  /// Creates a description of a node's content. All sizes are in bytes.
  package init(
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
