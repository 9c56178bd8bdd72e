public import ZDCProtocol

/// The secret fields of content, visible only to readers: its key and exact sizes (PROTOCOL 3.6).
public struct ContentSecrets: Sendable, Equatable {
  public var key: ContentKey
  public var sizes: ContentSizes
  /// The start of SHA-256 over the thumbnail; zero without a thumbnail.
  public var thumbnailTag: ThumbnailTag

  public init(key: ContentKey, sizes: ContentSizes, thumbnailTag: ThumbnailTag) {
    self.key = key
    self.sizes = sizes
    self.thumbnailTag = thumbnailTag
  }
}
