public import ZDCProtocol

/// What only readers learn of a content: its key and its exact sizes (PROTOCOL 3.6).
public struct ContentSecrets: Sendable, Equatable {
  public var key: ContentKey
  public var sizes: ContentSizes
  /// The start of SHA-256 over the thumbnail; zero without one.
  public var thumbnailTag: ThumbnailTag

  public init(key: ContentKey, sizes: ContentSizes, thumbnailTag: ThumbnailTag) {
    self.key = key
    self.sizes = sizes
    self.thumbnailTag = thumbnailTag
  }
}
