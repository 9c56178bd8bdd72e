package import ZDCProtocol

/// The record fields that opening content needs: public and private, checked against each other.
package struct ContentReference: Sendable {
  package let content: NodeRecord.Content
  package let secrets: ContentSecrets
  package let layout: ContentLayout

  init(content: NodeRecord.Content, secrets: ContentSecrets, layout: ContentLayout) {
    self.content = content
    self.secrets = secrets
    self.layout = layout
  }

  /// Creates a reference from the public and private fields.
  ///
  /// - Throws: `contentHeaderInvalid` or `limitExceeded` if sizes and ciphertext length contradict each other.
  package init(content: NodeRecord.Content, secrets: ContentSecrets) throws(ZDCSecurityError) {
    let layout = try ContentLayout(sizes: secrets.sizes, cipherLength: content.cipherLength)
    self.init(content: content, secrets: secrets, layout: layout)
  }
}

/// The ciphertext to fetch for a range of plaintext.
package struct ContentRangePlan: Sendable, Hashable {
  /// The requested bytes, counted from the start of the plaintext.
  package let plaintext: Range<UInt64>
  package let leaves: Range<UInt64>
  /// Ciphertext byte ranges in order, at most two: the first leaf, unless the reader has it, and the covering leaves.
  /// Both start and end on leaf boundaries.
  package let fetches: [Range<UInt64>]

  /// Whether the bytes have to be proven by hashes from the server.
  package func needsProof(_ layout: ContentLayout) -> Bool { !fetches.isEmpty && layout.leafCount > 1 }
}

/// Opens leaves of content in any order. It returns nothing whose leaf hash and tags are not verified (PROTOCOL 3.8).
package struct ContentReader: Sendable {
  package let reference: ContentReference
  private var leaves: ContentLeaves?
  private var firstLeafHash: MerkleHash?
  private var cipher: ChunkedCipher?

  /// Creates a reader that knows the hashes of all leaves.
  package init(_ reference: ContentReference, leaves: ContentLeaves) {
    self.reference = reference
    self.leaves = leaves
  }

  /// Creates a reader of ranges, each of which comes with a proof.
  package init(_ reference: ContentReference) {
    self.reference = reference
  }

  /// Whether the first leaf must be opened before any other. It holds the salt and the header.
  package var needsFirstLeaf: Bool { cipher == nil }

  /// Plans the read of a whole section.
  package func plan(_ section: ContentSection) -> ContentRangePlan {
    plan(plaintext: reference.layout.range(of: section))
  }

  /// Plans a single read of several sections and everything between them.
  package func plan(_ sections: [ContentSection]) -> ContentRangePlan {
    let ranges = sections.map(reference.layout.range(of:)).filter { !$0.isEmpty }
    let start = ranges.map(\.lowerBound).min() ?? 0
    return plan(plaintext: start..<(ranges.map(\.upperBound).max() ?? start))
  }

  /// Plans the read of everything before the data.
  package func planOfHead() -> ContentRangePlan {
    plan(plaintext: 0..<reference.layout.range(of: .data).lowerBound)
  }

  /// The content's salt; nil until the first leaf is opened.
  var salt: [UInt8]? { cipher?.salt }

  /// Returns the part of an opened plan that is this section; empty if the plan does not hold all of it.
  package func section(_ section: ContentSection, in bytes: [UInt8], of plan: ContentRangePlan) -> ArraySlice<UInt8> {
    let range = reference.layout.range(of: section)
    guard !range.isEmpty, range.clamped(to: plan.plaintext) == range else { return [] }
    let start = Int(range.lowerBound - plan.plaintext.lowerBound)
    return bytes[start..<start + range.count]
  }

  /// Plans the read of a part of a section; nil if it is outside the section.
  package func plan(_ part: Range<UInt64>, of section: ContentSection) -> ContentRangePlan? {
    reference.layout.range(of: part, in: section).map(plan(plaintext:))
  }

  private func plan(plaintext: Range<UInt64>) -> ContentRangePlan {
    let layout = reference.layout
    let covering = layout.leaves(covering: plaintext)
    var runs: [Range<UInt64>] = []
    if !covering.isEmpty {
      if needsFirstLeaf && covering.lowerBound > 1 {
        runs = [0..<1, covering]
      } else if needsFirstLeaf {
        runs = [0..<covering.upperBound]
      } else {
        runs = [covering]
      }
    }
    return ContentRangePlan(
      plaintext: plaintext, leaves: covering, fetches: runs.map(layout.cipherRange(ofLeaves:)))
  }

  /// Opens the ciphertext that was fetched for a plan.
  ///
  /// - Parameter fetched: One array per range of `plan.fetches`.
  /// - Throws: `contentTruncated` or `contentTrailingData` for a wrong length, `contentHashMismatch`,
  ///   `commitmentMismatch`, `contentHeaderInvalid`, `chunkAuthFailed`.
  package mutating func read(_ plan: ContentRangePlan, fetched: [[UInt8]]) throws(ZDCSecurityError) -> [UInt8] {
    try checkLengths(plan, fetched)
    var result: [UInt8] = []
    result.reserveCapacity(plan.plaintext.count)
    for (range, bytes) in zip(plan.fetches, fetched) {
      try open(bytes, from: range.lowerBound, plan: plan, into: &result)
    }
    try checkThumbnail(result, plan: plan)
    return result
  }

  /// Opens the ciphertext that was fetched for a plan. The server's hashes for these leaves and the first one prove it
  /// (`ContentGeometry.provenLeaves`).
  ///
  /// - Throws: Same as ``read(_:fetched:)``.
  package mutating func read(
    _ plan: ContentRangePlan, fetched: [[UInt8]], proof: [UInt8]
  ) throws(ZDCSecurityError) -> [UInt8] {
    try checkLengths(plan, fetched)
    guard plan.needsProof(reference.layout) else {
      leaves = try ContentLeaves(for: reference)
      return try read(plan, fetched: fetched)
    }
    let hashes = zip(plan.fetches, fetched).flatMap { leafHashes($1, from: $0.lowerBound) }
    let count = plan.leaves.upperBound - plan.leaves.lowerBound
    let proven = ContentGeometry.provenLeaves(
      from: plan.leaves.lowerBound, count: count, cipherLength: reference.layout.cipherLength)
    let isFirstFetched = plan.fetches.first?.lowerBound == 0
    let known = isFirstFetched ? [] : firstLeafHash.map { [$0] } ?? []
    leaves = try ContentLeaves(known + hashes, of: proven, proof: proof, for: reference)
    return try read(plan, fetched: fetched)
  }

  private func checkLengths(_ plan: ContentRangePlan, _ fetched: [[UInt8]]) throws(ZDCSecurityError) {
    try require(fetched.count >= plan.fetches.count, .contentTruncated)
    for (range, bytes) in zip(plan.fetches, fetched) {
      try require(bytes.count >= range.count, .contentTruncated)
      try require(bytes.count == range.count, .contentTrailingData)
    }
  }

  /// Returns the hashes of the leaves that begin at `start`, which is a leaf boundary.
  private func leafHashes(_ bytes: [UInt8], from start: UInt64) -> [MerkleHash] {
    var hashes: [MerkleHash] = []
    var position = 0
    while position < bytes.count {
      let size = start == 0 && position == 0 ? ContentGeometry.firstLeafBytes : ContentGeometry.leafBytes
      let end = min(position + size, bytes.count)
      hashes.append(withBytes(of: bytes, position..<end) { leafHash($0) })
      position = end
    }
    return hashes
  }

  private mutating func open(
    _ bytes: [UInt8], from start: UInt64, plan: ContentRangePlan, into result: inout [UInt8]
  ) throws(ZDCSecurityError) {
    let end = start + UInt64(bytes.count)
    var index =
      start == 0 ? 0 : 1 + (start - UInt64(ContentGeometry.firstLeafBytes)) / UInt64(ContentGeometry.leafBytes)
    while index < reference.layout.leafCount {
      let range = ContentGeometry.leafRange(index, cipherLength: reference.layout.cipherLength)
      guard range.upperBound <= end else { return }
      let leaf = try open(leaf: index, Array(bytes[Int(range.lowerBound - start)..<Int(range.upperBound - start)]))
      let plaintext = reference.layout.plaintextRange(ofLeaf: index)
      let wanted = plaintext.clamped(to: plan.plaintext)
      if !wanted.isEmpty {
        let first = Int(wanted.lowerBound - plaintext.lowerBound)
        result += leaf[first..<first + wanted.count]
      }
      index += 1
    }
  }

  /// Checks a thumbnail that is read whole against the record.
  private func checkThumbnail(_ bytes: [UInt8], plan: ContentRangePlan) throws(ZDCSecurityError) {
    let thumbnail = section(.thumbnail, in: bytes, of: plan)
    guard !thumbnail.isEmpty else { return }
    try require(ContentHeader.tag(ofThumbnail: thumbnail) == reference.secrets.thumbnailTag, .contentHeaderInvalid)
  }

  /// Verifies and opens one leaf. The first leaf must be opened first.
  package mutating func open(leaf index: UInt64, _ bytes: [UInt8]) throws(ZDCSecurityError) -> [UInt8] {
    try require(index < reference.layout.leafCount, .contentTrailingData)
    let range = ContentGeometry.leafRange(index, cipherLength: reference.layout.cipherLength)
    try require(bytes.count >= range.count, .contentTruncated)
    try require(bytes.count == range.count, .contentTrailingData)
    let hash = leafHash(bytes)
    try require(hash == leaves?[index], .contentHashMismatch)
    if index == 0 {
      cipher = try firstLeafCipher(bytes)
      firstLeafHash = hash
    }
    let plaintext = try openChunks(bytes, leaf: index)
    if index == 0 { try checkHeader(plaintext) }
    try checkPadding(plaintext, leaf: index)
    return plaintext
  }

  private func firstLeafCipher(_ bytes: [UInt8]) throws(ZDCSecurityError) -> ChunkedCipher {
    let context = contentContext(reference.content.blobID)
    let prefix = bytes.prefix(ContentGeometry.prefixBytes)
    guard let cipher = ChunkedCipher(key: reference.secrets.key.symmetric, prefix: prefix, context: context) else {
      throw ZDCSecurityError(.commitmentMismatch)
    }
    return cipher
  }

  private func openChunks(_ bytes: [UInt8], leaf index: UInt64) throws(ZDCSecurityError) -> [UInt8] {
    guard let cipher else { throw ZDCSecurityError(.commitmentMismatch) }
    var plaintext: [UInt8] = []
    plaintext.reserveCapacity(bytes.count)
    var start = index == 0 ? ContentGeometry.prefixBytes : 0
    var chunk = index * UInt64(ContentGeometry.chunksPerLeaf)
    while start < bytes.count {
      let end = min(start + ContentGeometry.sealedChunkBytes, bytes.count)
      do throws(CryptoFailure) {
        try withBytes(of: bytes, start..<end) { (sealed) throws(CryptoFailure) in
          try cipher.open(sealed, index: chunk, into: &plaintext)
        }
      } catch { throw ZDCSecurityError(.chunkAuthFailed) }
      start = end
      chunk += 1
    }
    return plaintext
  }

  /// Checks that the padding is zero. Several encodings of the same file would form a covert channel.
  private func checkPadding(_ plaintext: [UInt8], leaf index: UInt64) throws(ZDCSecurityError) {
    let used = reference.layout.plaintextLength - reference.layout.paddingSize
    let start = reference.layout.plaintextRange(ofLeaf: index).lowerBound
    guard start + UInt64(plaintext.count) > used else { return }
    let padding = plaintext[(used > start ? Int(used - start) : 0)...]
    try require(padding.allSatisfy { $0 == 0 }, .contentHeaderInvalid)
  }

  private func checkHeader(_ plaintext: [UInt8]) throws(ZDCSecurityError) {
    let header = try ContentHeader(plaintext.prefix(ContentGeometry.headerBytes))
    let expected = ContentHeader(
      sizes: reference.secrets.sizes, paddingSize: reference.layout.paddingSize,
      thumbnailTag: reference.secrets.thumbnailTag)
    try require(header == expected, .contentHeaderInvalid)
  }
}
