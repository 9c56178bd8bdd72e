package import ZDCProtocol

/// The sections of content that a reader can request (PROTOCOL 3.8).
package enum ContentSection: Sendable, Hashable, CaseIterable {
  case metadata
  case thumbnail
  case data
}

/// The exact sizes of the content's sections.
package struct ContentSizes: Sendable, Hashable {
  package var metadata: UInt32
  package var thumbnail: UInt32
  package var data: UInt64

  package init(metadata: UInt32 = 0, thumbnail: UInt32 = 0, data: UInt64) {
    self.metadata = metadata
    self.thumbnail = thumbnail
    self.data = data
  }

  /// The length of header and sections together; nil if a section or the whole exceeds its limit.
  var unpaddedLength: UInt64? {
    guard metadata <= Limits.metadataBytes, thumbnail <= Limits.thumbnailBytes, data <= Limits.contentCipherBytes
    else { return nil }
    return UInt64(ContentGeometry.headerBytes) + UInt64(metadata) + UInt64(thumbnail) + data
  }
}

/// The positions of all sections in sealed content. Sizes and ciphertext length together determine the amount of
/// padding.
package struct ContentLayout: Sendable, Hashable {
  package let sizes: ContentSizes
  package let paddingSize: UInt64
  package let cipherLength: UInt64
  /// Header, sections and padding.
  package let plaintextLength: UInt64

  /// Creates the layout of content that is about to be sealed.
  ///
  /// - Throws: `limitExceeded` if a section or the ciphertext would be too large.
  package init(sizes: ContentSizes, padding: ContentPadding) throws(ZDCSecurityError) {
    guard let unpadded = sizes.unpaddedLength else { throw ZDCSecurityError(.limitExceeded) }
    let padded = padding.paddedLength(of: unpadded)
    try require(padded <= Limits.contentCipherBytes, .limitExceeded)
    self.sizes = sizes
    plaintextLength = padded
    paddingSize = padded - unpadded
    cipherLength = ContentGeometry.sealedLength(of: padded)
    try require(cipherLength <= Limits.contentCipherBytes, .limitExceeded)
  }

  /// Creates the layout of content that a record describes.
  ///
  /// - Throws: `limitExceeded`, or `contentHeaderInvalid` if these sizes cannot have this ciphertext length.
  package init(sizes: ContentSizes, cipherLength: UInt64) throws(ZDCSecurityError) {
    guard let unpadded = sizes.unpaddedLength, cipherLength <= Limits.contentCipherBytes else {
      throw ZDCSecurityError(.limitExceeded)
    }
    guard let plaintext = Self.plaintextLength(cipherLength: cipherLength), plaintext >= unpadded else {
      throw ZDCSecurityError(.contentHeaderInvalid)
    }
    self.sizes = sizes
    self.cipherLength = cipherLength
    plaintextLength = plaintext
    paddingSize = plaintext - unpadded
  }

  private static func plaintextLength(cipherLength: UInt64) -> UInt64? {
    guard cipherLength >= UInt64(ContentGeometry.prefixBytes) else { return nil }
    let (full, rest) = (cipherLength - UInt64(ContentGeometry.prefixBytes))
      .quotientAndRemainder(dividingBy: UInt64(ContentGeometry.sealedChunkBytes))
    guard rest >= UInt64(ContentGeometry.tagBytes) else { return nil }
    return full * UInt64(ContentGeometry.chunkBytes) + rest - UInt64(ContentGeometry.tagBytes)
  }

  package var leafCount: UInt64 { ContentGeometry.leafCount(cipherLength: cipherLength) }

  /// Returns the plaintext range of a section.
  package func range(of section: ContentSection) -> Range<UInt64> {
    let metadata = UInt64(ContentGeometry.headerBytes)
    let thumbnail = metadata + UInt64(sizes.metadata)
    let data = thumbnail + UInt64(sizes.thumbnail)
    return switch section {
    case .metadata: metadata..<thumbnail
    case .thumbnail: thumbnail..<data
    case .data: data..<data + sizes.data
    }
  }

  /// Returns the plaintext range of a part of a section; nil if it is outside the section.
  package func range(of part: Range<UInt64>, in section: ContentSection) -> Range<UInt64>? {
    let whole = range(of: section)
    guard part.upperBound <= UInt64(whole.count) else { return nil }
    return whole.lowerBound + part.lowerBound..<whole.lowerBound + part.upperBound
  }

  /// Returns the plaintext range of leaf `index`.
  func plaintextRange(ofLeaf index: UInt64) -> Range<UInt64> {
    let leaf = UInt64(ContentGeometry.chunksPerLeaf * ContentGeometry.chunkBytes)
    let start = min(index * leaf, plaintextLength)
    return start..<min(start + leaf, plaintextLength)
  }

  /// Returns the number of data bytes before leaf `index`.
  package func dataOffset(ofLeaf index: UInt64) -> UInt64 {
    let data = range(of: .data)
    let start = plaintextRange(ofLeaf: index).lowerBound
    return min(max(start, data.lowerBound), data.upperBound) - data.lowerBound
  }

  /// Returns the leaves that hold these plaintext bytes.
  func leaves(covering range: Range<UInt64>) -> Range<UInt64> {
    guard !range.isEmpty else { return 0..<0 }
    let leaf = UInt64(ContentGeometry.chunksPerLeaf * ContentGeometry.chunkBytes)
    return range.lowerBound / leaf..<(range.upperBound - 1) / leaf + 1
  }

  /// Returns the ciphertext range of consecutive leaves.
  package func cipherRange(ofLeaves leaves: Range<UInt64>) -> Range<UInt64> {
    guard let first = leaves.first, let last = leaves.last else { return 0..<0 }
    let start = ContentGeometry.leafRange(first, cipherLength: cipherLength).lowerBound
    return start..<ContentGeometry.leafRange(last, cipherLength: cipherLength).upperBound
  }
}
