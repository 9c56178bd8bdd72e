package import ZDCProtocol

/// The secret fields of content, visible only to readers: its key and exact sizes (PROTOCOL 3.6).
package struct ContentSecrets: Sendable, Equatable {
  package var key: ContentKey
  package var sizes: ContentSizes
  /// The start of SHA-256 over the thumbnail; zero without a thumbnail.
  package var thumbnailTag: ThumbnailTag

  package init(key: ContentKey, sizes: ContentSizes, thumbnailTag: ThumbnailTag) {
    self.key = key
    self.sizes = sizes
    self.thumbnailTag = thumbnailTag
  }
}
