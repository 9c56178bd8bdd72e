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

  /// The secrets of content whose key and sizes are not known: a random key, and no sections. They fit each length of content.
  package static func unknown() -> ContentSecrets {
    ContentSecrets(key: .random(), sizes: ContentSizes(data: 0), thumbnailTag: .zero)
  }

  /// Returns whether the key opens content that begins with these bytes: its salt and its commitment to the key.
  package func open(prefix: [UInt8], of blob: BlobID) -> Bool {
    ChunkedCipher(key: key.symmetric, prefix: prefix, context: contentContext(blob)) != nil
  }
}
