/// Compile-time limits of ZDC/1 (PROTOCOL 3.13). Client and server refuse larger input before they allocate.
package enum Limits {
  /// A folded name in UTF-8 bytes.
  package static let nameBytes = 1_024
  /// Maximum depth of a node below its trunk, at creation and after moves.
  package static let depthAtCreation = 128
  package static let depthAfterMoves = 256
  package static let recordBytes = 64 << 10
  /// The private part of a record. A profile fits into it, with all other fields.
  package static let recordPrivateBytes = 40 << 10
  package static let oldKeyGenerations = 512
  /// The sealed length of that many generations, 36 bytes each.
  package static let historyWrapBytes = Int(ContentGeometry.sealedLength(of: 36 * UInt64(oldKeyGenerations)))
  package static let commitBytes = 1 << 20
  package static let commitOperations = 1_000
  /// Maximum number of live descendants that all deletes of one commit state in total.
  package static let deletedDescendants: UInt64 = 10_000
  /// Maximum number of nodes that are split off into their own zone.
  package static let splitNodes: UInt64 = 1_000_000
  /// Maximum increase of a record's or content's version in one put.
  package static let versionJump: UInt64 = 1 << 32
  /// The maximum dataVersion of a new node. It takes ``versionJump`` puts of ``versionJump`` each to use up the others.
  package static let firstDataVersion: UInt64 = 1 << 63
  package static let zonesPerRequest = 64
  /// Maximum number of other users' zones that one user follows.
  package static let memberships = 1_000
  /// Maximum size of a whole commit request: commits, records, access lists, grants and inline content.
  package static let commitRequestBytes = 8 << 20
  package static let pageBytes = 4 << 20
  package static let recordsPerRequest = 1_000
  package static let blobsPerRequest = 1_000
  package static let aclEntries = 1_024
  package static let aclBytes = 256 << 10
  /// Maximum size of the edit of an access list: a whole list, and a removed user for each entry.
  package static let aclEditBytes = aclBytes + 32 * aclEntries + 6
  package static let grantBytes = 4 << 10
  /// Maximum size of an identity link's claims. All other fields of a link have a fixed length.
  package static let linkClaimBytes = 2 << 10
  package static let linkBytes = 4 << 10
  /// Maximum size of all links of a user together.
  package static let chainBytes = 1 << 20
  /// The bundle size of a chain at its limit: one item header per link, and no link is shorter than 1,606 bytes.
  package static let chainBundleBytes = chainBytes + 5 * (chainBytes / 1_606 + 1)
  package static let keyringBytes = 64 << 10
  /// Maximum size of a sealed message.
  package static let envelopeBytes = 1 << 20
  /// Maximum size of a message's content. The rest of an envelope is padding, keys and signatures.
  package static let messageBytes = envelopeBytes - (64 << 10)
  /// Maximum number of zones whose heads a message states.
  package static let messageHeads = 16
  /// A user's name and avatar, as other people see them.
  package static let profileNameBytes = 256
  package static let profileAvatarBytes = 32 << 10
  /// Maximum number of people to whom one version of a profile is sent.
  package static let profileRecipients = 1_000
  /// Maximum number of devices of one sender whose messages are counted.
  package static let messageDevices = 64
  /// Maximum number of envelopes in one request.
  package static let envelopesPerRequest = 256
  /// Maximum ciphertext of content that is sent in the commit request and stored in the server's database.
  package static let inlineContentBytes = 64 << 10
  /// Zone heads that a device sends to a new one, and the sealed answer that holds them.
  package static let deviceLinkHeads = 256
  package static let deviceLinkAnswerBytes = 32 << 10
  /// How long a new device may use the code of its link.
  package static let deviceLinkMs: UInt64 = 600_000
  /// Envelopes that a server keeps for one inbox.
  package static let inboxEnvelopes = 1_000
  package static let metadataBytes = 16 << 20
  package static let thumbnailBytes = 16 << 20
  /// Maximum ciphertext: 32 GiB, including the format's overhead.
  package static let contentCipherBytes: UInt64 = 32 << 30
  package static let jsonBytes = 4 << 20
  package static let jsonDepth = 32
  package static let appTreeIDBytes = 8...64
  package static let partsPerBlob = 10_000
  /// A proof for the first leaf and one range of the largest content: fewer than three hashes per level.
  package static let leafProofBytes = 3 * 20 * 32
  /// Maximum page size for a head event to carry its page.
  package static let eventPageBytes = 64 << 10
}

/// The geometry of sealed content (PROTOCOL 3.0, 3.8).
package enum ContentGeometry {
  package static let chunkBytes = 16_384
  package static let tagBytes = 16
  package static let sealedChunkBytes = chunkBytes + tagBytes
  /// Salt and commitment.
  package static let prefixBytes = 56
  package static let chunksPerLeaf = 4
  package static let leafBytes = chunksPerLeaf * sealedChunkBytes
  package static let firstLeafBytes = prefixBytes + leafBytes
  package static let headerBytes = 64

  /// Returns the length of `count` bytes after SEAL. The last chunk is always short, possibly empty. A hostile count
  /// saturates.
  package static func sealedLength(of count: UInt64) -> UInt64 {
    guard count <= 1 << 62 else { return .max }
    return UInt64(prefixBytes) + count + (count / UInt64(chunkBytes) + 1) * UInt64(tagBytes)
  }

  package static func leafCount(cipherLength: UInt64) -> UInt64 {
    guard cipherLength > UInt64(firstLeafBytes) else { return 1 }
    return 2 + (cipherLength - UInt64(firstLeafBytes) - 1) / UInt64(leafBytes)
  }

  /// Returns the ciphertext range of leaf `index`. It is empty, at the end, for an index after the last leaf.
  package static func leafRange(_ index: UInt64, cipherLength: UInt64) -> Range<UInt64> {
    guard index < leafCount(cipherLength: cipherLength) else { return cipherLength..<cipherLength }
    let start = index == 0 ? 0 : UInt64(firstLeafBytes) + (index - 1) * UInt64(leafBytes)
    let size = index == 0 ? firstLeafBytes : leafBytes
    return start..<start + min(UInt64(size), cipherLength - start)
  }

  /// Returns the leaves that a proof for leaves `from` to `from + count - 1` covers. They include the first leaf, which
  /// every reader needs for the salt and the header. Ascending; clamped to the content's leaves.
  package static func provenLeaves(from: UInt64, count: UInt64, cipherLength: UInt64) -> [Range<UInt64>] {
    let all = leafCount(cipherLength: cipherLength)
    let first = min(from, all)
    let end = first + min(count, all - first)
    guard first < end else { return [0..<1] }
    return first <= 1 ? [0..<end] : [0..<1, first..<end]
  }

  /// Returns the number of leaves per upload part: about 8 MiB, or more if there would be more than 10,000 parts.
  package static func leavesPerPart(cipherLength: UInt64) -> UInt64 {
    let leaves = leafCount(cipherLength: cipherLength)
    return max(128, (leaves - 1) / UInt64(Limits.partsPerBlob) + 1)
  }

  package static func partCount(cipherLength: UInt64) -> Int {
    let perPart = leavesPerPart(cipherLength: cipherLength)
    return Int((leafCount(cipherLength: cipherLength) - 1) / perPart + 1)
  }

  /// Returns the ciphertext range of part `index`. Parts end on leaf boundaries. Empty, at the end, for an invalid
  /// index.
  package static func partRange(_ index: Int, cipherLength: UInt64) -> Range<UInt64> {
    guard index >= 0, index < partCount(cipherLength: cipherLength) else { return cipherLength..<cipherLength }
    let perPart = leavesPerPart(cipherLength: cipherLength)
    let first = UInt64(index) * perPart
    let last = first + min(perPart, leafCount(cipherLength: cipherLength) - first) - 1
    let start = leafRange(first, cipherLength: cipherLength).lowerBound
    return start..<leafRange(last, cipherLength: cipherLength).upperBound
  }
}
