internal import Crypto
package import ZDCProtocol

/// The first 64 bytes of the content's plaintext (PROTOCOL 3.8).
package struct ContentHeader: Sendable, Hashable {
  package var sizes: ContentSizes
  package var paddingSize: UInt64
  package var thumbnailTag: ThumbnailTag

  package init(sizes: ContentSizes, paddingSize: UInt64, thumbnailTag: ThumbnailTag) {
    self.sizes = sizes
    self.paddingSize = paddingSize
    self.thumbnailTag = thumbnailTag
  }

  private static let magic = Array("ZDCFILE1".utf8)

  package var bytes: [UInt8] {
    var out = ByteWriter(capacity: ContentGeometry.headerBytes)
    out.append(contentsOf: Self.magic)
    out.append(UInt8(1))
    out.append(UInt8(0))
    out.append(UInt16(0))
    out.append(sizes.metadata)
    out.append(sizes.thumbnail)
    out.append(sizes.data)
    out.append(paddingSize)
    out.append(thumbnailTag)
    out.append(zeros: 12)
    return out.bytes
  }

  /// Decodes a header.
  ///
  /// - Throws: `contentHeaderInvalid` for any deviation from the format.
  package init(_ bytes: some Collection<UInt8>) throws(ZDCSecurityError) {
    do throws(ZDCSecurityError) {
      try self.init(decoding: Array(bytes))
    } catch { throw ZDCSecurityError(.contentHeaderInvalid) }
  }

  private init(decoding bytes: [UInt8]) throws(ZDCSecurityError) {
    var reader = ByteReader(bytes)
    try require(try reader.read(count: 8).elementsEqual(Self.magic), .contentHeaderInvalid)
    try require(try reader.readUInt8() == 1, .contentHeaderInvalid)
    try require(try reader.readUInt8() == 0, .contentHeaderInvalid)
    try require(try reader.readUInt16() == 0, .contentHeaderInvalid)
    let metadata = try reader.readUInt32()
    let thumbnail = try reader.readUInt32()
    sizes = ContentSizes(metadata: metadata, thumbnail: thumbnail, data: try reader.readUInt64())
    try require(sizes.unpaddedLength != nil, .contentHeaderInvalid)
    paddingSize = try reader.readUInt64()
    thumbnailTag = try reader.read16()
    try require(try reader.read(count: 12).allSatisfy { $0 == 0 }, .contentHeaderInvalid)
    try reader.finish()
  }

  /// `SHA-256(thumbnail)[0..16)`; zero without a thumbnail.
  package static func tag(ofThumbnail thumbnail: some Collection<UInt8>) -> ThumbnailTag {
    guard !thumbnail.isEmpty else { return .zero }
    return ThumbnailTag(prefixOf: Bytes32<ThumbnailTagRole>(sha256: thumbnail))
  }
}
