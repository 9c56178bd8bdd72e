/// Compile-time limits of ZDC/1 (PROTOCOL 3.13). Client and server refuse what exceeds them before they allocate.
public enum Limits {
  /// A folded name in UTF-8 bytes.
  public static let nameBytes = 1_024
  /// Depth of a node below its trunk at creation, and after moves.
  public static let depthAtCreation = 128
  public static let depthAfterMoves = 256
  public static let recordBytes = 64 << 10
  public static let recordPrivateBytes = 32 << 10
  public static let oldKeyGenerations = 512
  /// SEAL's length for so many generations of 36 bytes.
  public static let historyWrapBytes = Int(ContentGeometry.sealedLength(of: 36 * UInt64(oldKeyGenerations)))
  public static let commitBytes = 1 << 20
  public static let commitOperations = 1_000
  /// Live descendants that all deletes of one commit state together.
  public static let deletedDescendants: UInt64 = 10_000
  /// How much a record's or a content's version may rise in one put.
  public static let versionJump: UInt64 = 1 << 32
  public static let zonesPerRequest = 64
  /// A commit request in all: commits, records, access lists, grants and inline content.
  public static let commitRequestBytes = 8 << 20
  public static let pageBytes = 4 << 20
  public static let recordsPerRequest = 1_000
  public static let blobsPerRequest = 1_000
  public static let aclEntries = 1_024
  public static let aclBytes = 256 << 10
  public static let grantBytes = 4 << 10
  /// The claims of one identity link. Everything else in a link has a fixed length.
  public static let linkClaimBytes = 2 << 10
  public static let linkBytes = 4 << 10
  /// All links of a user together.
  public static let chainBytes = 1 << 20
  /// A chain at its limit as a bundle: an item header for each link, and no link is shorter than 1,606 bytes.
  public static let chainBundleBytes = chainBytes + 5 * (chainBytes / 1_606 + 1)
  public static let keyringBytes = 64 << 10
  /// Content whose ciphertext is at most this rides in the commit request and lives in the server's database.
  public static let inlineContentBytes = 64 << 10
  public static let metadataBytes = 16 << 20
  public static let thumbnailBytes = 16 << 20
  /// 32 GiB, less what the format adds.
  public static let contentCipherBytes: UInt64 = 32 << 30
  public static let jsonBytes = 4 << 20
  public static let jsonDepth = 32
  public static let appTreeIDBytes = 8...64
  public static let partsPerBlob = 10_000
  /// A proof for the first leaf and one range of the largest content: fewer than three hashes for each level.
  public static let leafProofBytes = 3 * 20 * 32
  /// A head event carries its page if that is at most this long.
  public static let eventPageBytes = 64 << 10
}

/// The geometry of sealed content (PROTOCOL 3.0, 3.8).
public enum ContentGeometry {
  public static let chunkBytes = 16_384
  public static let tagBytes = 16
  public static let sealedChunkBytes = chunkBytes + tagBytes
  /// Salt and commitment.
  public static let prefixBytes = 56
  public static let chunksPerLeaf = 4
  public static let leafBytes = chunksPerLeaf * sealedChunkBytes
  public static let firstLeafBytes = prefixBytes + leafBytes
  public static let headerBytes = 64

  /// What SEAL makes of `count` bytes: the last chunk is always short, possibly empty. A hostile count saturates.
  public static func sealedLength(of count: UInt64) -> UInt64 {
    guard count <= 1 << 62 else { return .max }
    return UInt64(prefixBytes) + count + (count / UInt64(chunkBytes) + 1) * UInt64(tagBytes)
  }

  public static func leafCount(cipherLength: UInt64) -> UInt64 {
    guard cipherLength > UInt64(firstLeafBytes) else { return 1 }
    return 2 + (cipherLength - UInt64(firstLeafBytes) - 1) / UInt64(leafBytes)
  }

  /// The ciphertext bytes of leaf `index`; empty, at the end, behind the last.
  public static func leafRange(_ index: UInt64, cipherLength: UInt64) -> Range<UInt64> {
    guard index < leafCount(cipherLength: cipherLength) else { return cipherLength..<cipherLength }
    let start = index == 0 ? 0 : UInt64(firstLeafBytes) + (index - 1) * UInt64(leafBytes)
    let size = index == 0 ? firstLeafBytes : leafBytes
    return start..<start + min(UInt64(size), cipherLength - start)
  }

  /// The leaves that a proof for leaves `from` to `from + count - 1` covers: these, and the first one, which every reader
  /// needs for the salt and the header. Ascending; clamped to the content's leaves.
  public static func provenLeaves(from: UInt64, count: UInt64, cipherLength: UInt64) -> [Range<UInt64>] {
    let all = leafCount(cipherLength: cipherLength)
    let first = min(from, all)
    let end = first + min(count, all - first)
    guard first < end else { return [0..<1] }
    return first <= 1 ? [0..<end] : [0..<1, first..<end]
  }

  /// Leaves in one part of a multi-part upload: about 8 MiB, growing so that there are at most 10,000 parts.
  public static func leavesPerPart(cipherLength: UInt64) -> UInt64 {
    let leaves = leafCount(cipherLength: cipherLength)
    return max(128, (leaves - 1) / UInt64(Limits.partsPerBlob) + 1)
  }

  public static func partCount(cipherLength: UInt64) -> Int {
    let perPart = leavesPerPart(cipherLength: cipherLength)
    return Int((leafCount(cipherLength: cipherLength) - 1) / perPart + 1)
  }

  /// The ciphertext bytes of part `index`; parts end on leaf borders. Empty, at the end, for an index that is none.
  public static func partRange(_ index: Int, cipherLength: UInt64) -> Range<UInt64> {
    guard index >= 0, index < partCount(cipherLength: cipherLength) else { return cipherLength..<cipherLength }
    let perPart = leavesPerPart(cipherLength: cipherLength)
    let first = UInt64(index) * perPart
    let last = first + min(perPart, leafCount(cipherLength: cipherLength) - first) - 1
    let start = leafRange(first, cipherLength: cipherLength).lowerBound
    return start..<leafRange(last, cipherLength: cipherLength).upperBound
  }
}
