package import ZDCProtocol

/// A leaf of sealed content: the unit of hashing, verification and upload parts (PROTOCOL 3.8).
package struct SealedLeaf: Sendable {
  package let index: UInt64
  /// Ciphertext, at most 65,656 bytes.
  package let bytes: [UInt8]
  package let hash: MerkleHash
}

/// Content that was sealed in one piece.
package struct SealedContent: Sendable {
  package let blobID: BlobID
  package let bytes: [UInt8]
  package let contentRoot: ContentRoot
  package let secrets: ContentSecrets

  package var cipherLength: UInt64 { UInt64(bytes.count) }

  /// Whether it may be sent inside the commit request.
  package var isInline: Bool { bytes.count <= Limits.inlineContentBytes }

  /// The public fields for the node's record.
  package func content(dataVersion: UInt64) -> NodeRecord.Content {
    NodeRecord.Content(
      dataVersion: dataVersion, blobID: blobID, cipherLength: cipherLength, contentRoot: contentRoot)
  }
}

/// Seals content as a stream of leaves, in constant memory (PROTOCOL 3.8).
///
/// Metadata, thumbnail and the data's size are given at the start, so the length of the ciphertext is known before the
/// first byte. It is a class because a copy that continued with other data would reuse nonces. Synchronous; must not be
/// used from two tasks concurrently.
///
/// Each upload attempt needs a new sealer with a fresh salt, content key and `blobID`.
package final class ContentSealer {
  package let blobID: BlobID
  package let secrets: ContentSecrets
  package let layout: ContentLayout
  /// Header, metadata and thumbnail.
  private let head: [UInt8]
  private let cipher: ChunkedCipher
  private var pending: [UInt8] = []
  private var position: UInt64 = 0
  private var dataPushed: UInt64 = 0
  private var padded: UInt64 = 0
  private var tree = MerkleTree.Builder()
  private var isFinished = false

  static let leafPlaintextBytes = ContentGeometry.chunksPerLeaf * ContentGeometry.chunkBytes

  /// Creates a sealer with a fresh salt, content key and `blobID`.
  ///
  /// - Throws: `ZDCSecurityError.limitExceeded` if a section or the whole is too large.
  package convenience init(
    metadata: [UInt8] = [], thumbnail: [UInt8] = [], dataSize: UInt64, padding: ContentPadding = .padme
  ) throws(ZDCSecurityError) {
    var source = SystemRandomSource()
    try self.init(
      metadata: metadata, thumbnail: thumbnail, dataSize: dataSize, padding: padding, blobID: .random(),
      random: &source)
  }

  package init(
    metadata: [UInt8], thumbnail: [UInt8], dataSize: UInt64, padding: ContentPadding, blobID: BlobID,
    random: inout some RandomSource
  ) throws(ZDCSecurityError) {
    guard let metadataSize = UInt32(exactly: metadata.count), let thumbnailSize = UInt32(exactly: thumbnail.count)
    else { throw ZDCSecurityError(.limitExceeded) }
    let sizes = ContentSizes(metadata: metadataSize, thumbnail: thumbnailSize, data: dataSize)
    layout = try ContentLayout(sizes: sizes, padding: padding)
    let tag = ContentHeader.tag(ofThumbnail: thumbnail)
    let header = ContentHeader(sizes: sizes, paddingSize: layout.paddingSize, thumbnailTag: tag)
    head = header.bytes + metadata + thumbnail
    self.blobID = blobID
    secrets = ContentSecrets(key: .random(&random), sizes: sizes, thumbnailTag: tag)
    cipher = ChunkedCipher(
      key: secrets.key.symmetric, salt: random.bytes(ChunkedCipher.saltBytes),
      context: contentContext(blobID))
    pending.reserveCapacity(Self.leafPlaintextBytes)
  }

  /// Seals content again with the same salt, to compare it: for an interrupted upload, or a file that was downloaded
  /// before.
  ///
  /// Any of its bytes that leave the device must equal those that left it before (SECURITY B9).
  ///
  /// - Throws: `limitExceeded`; `CryptoFailure.invalidParameter` for an invalid salt.
  package init(
    again layout: ContentLayout, key: ContentKey, salt: [UInt8], blobID: BlobID, metadata: [UInt8], thumbnail: [UInt8]
  ) throws {
    guard salt.count == ChunkedCipher.saltBytes, metadata.count == Int(layout.sizes.metadata),
      thumbnail.count == Int(layout.sizes.thumbnail)
    else { throw CryptoFailure.invalidParameter }
    self.layout = layout
    self.blobID = blobID
    let tag = ContentHeader.tag(ofThumbnail: thumbnail)
    let header = ContentHeader(sizes: layout.sizes, paddingSize: layout.paddingSize, thumbnailTag: tag)
    head = header.bytes + metadata + thumbnail
    secrets = ContentSecrets(key: key, sizes: layout.sizes, thumbnailTag: tag)
    cipher = ChunkedCipher(key: key.symmetric, salt: salt, context: contentContext(blobID))
    pending.reserveCapacity(Self.leafPlaintextBytes)
  }

  /// Creates a sealer for content whose first leaf a reader has opened.
  package convenience init(
    again reader: ContentReader, metadata: some Collection<UInt8>, thumbnail: some Collection<UInt8>
  ) throws {
    guard let salt = reader.salt else { throw CryptoFailure.invalidParameter }
    try self.init(
      again: reader.reference.layout, key: reader.reference.secrets.key, salt: salt,
      blobID: reader.reference.content.blobID, metadata: Array(metadata), thumbnail: Array(thumbnail))
  }

  /// The salt, to be stored with the key for an upload that may be interrupted.
  package var salt: [UInt8] { cipher.salt }

  package var cipherLength: UInt64 { layout.cipherLength }

  /// Takes the next slice of data, of any size, and emits the leaves that it completes.
  ///
  /// - Throws: `CryptoFailure.sourceChanged` if there is more data than announced, or any error of `emit`.
  package func push(_ slice: some Collection<UInt8>, emit: (SealedLeaf) throws -> Void) throws {
    let done: Void? = try slice.withContiguousStorageIfAvailable {
      try push(bytes: UnsafeRawBufferPointer($0), emit: emit)
    }
    if done == nil { try Array(slice).withUnsafeBytes { try push(bytes: $0, emit: emit) } }
  }

  /// Takes the next bytes of data from memory that the caller owns, and emits the leaves that they complete.
  package func push(bytes: UnsafeRawBufferPointer, emit: (SealedLeaf) throws -> Void) throws {
    guard !isFinished, UInt64(bytes.count) <= layout.sizes.data - dataPushed else { throw CryptoFailure.sourceChanged }
    try startIfNeeded(emit)
    dataPushed += UInt64(bytes.count)
    try append(bytes, emit)
  }

  /// Adds some of the padding, so that ``finish(dataVersion:emit:)`` does not have to emit all of it.
  ///
  /// - Returns: Whether padding remains.
  /// - Throws: `CryptoFailure.sourceChanged` if there was less data than announced, or any error of `emit`.
  package func pad(atMost count: UInt64, emit: (SealedLeaf) throws -> Void) throws -> Bool {
    guard !isFinished, dataPushed == layout.sizes.data else { throw CryptoFailure.sourceChanged }
    try startIfNeeded(emit)
    try appendPadding(upTo: min(count, layout.paddingSize - padded), emit)
    return padded < layout.paddingSize
  }

  /// Adds the padding, emits the last leaves and returns the public fields for the node's record.
  ///
  /// - Throws: `CryptoFailure.sourceChanged` if there was less data than announced, or any error of `emit`.
  package func finish(
    dataVersion: UInt64, emit: (SealedLeaf) throws -> Void
  ) throws -> NodeRecord.Content {
    guard !isFinished, dataPushed == layout.sizes.data else { throw CryptoFailure.sourceChanged }
    try startIfNeeded(emit)
    try appendPadding(upTo: layout.paddingSize - padded, emit)
    isFinished = true
    try sealPending(emit)
    return NodeRecord.Content(
      dataVersion: dataVersion, blobID: blobID, cipherLength: layout.cipherLength,
      contentRoot: ContentRoot(reinterpreting: tree.root))
  }

  /// Seals leaf `index` again, to repeat a part of an interrupted upload.
  ///
  /// The salt is reused, so the source must not have changed. Send the part only if its hash equals the one that was
  /// sent before; otherwise discard the attempt (SECURITY B9).
  ///
  /// - Parameter read: Fills the whole buffer with data from the offset, or throws.
  package func leaf(
    _ index: UInt64, read: (_ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer) throws -> Void
  ) throws -> SealedLeaf {
    guard index < layout.leafCount else { throw CryptoFailure.invalidParameter }
    let range = layout.plaintextRange(ofLeaf: index)
    var plaintext = [UInt8](repeating: 0, count: range.count)
    let inHead = range.clamped(to: 0..<UInt64(head.count))
    if !inHead.isEmpty {
      plaintext.replaceSubrange(0..<inHead.count, with: head[Int(inHead.lowerBound)..<Int(inHead.upperBound)])
    }
    let data = layout.range(of: .data)
    let inData = range.clamped(to: data)
    if !inData.isEmpty {
      let start = Int(inData.lowerBound - range.lowerBound)
      try plaintext.withUnsafeMutableBytes { buffer in
        try read(
          inData.lowerBound - data.lowerBound,
          UnsafeMutableRawBufferPointer(rebasing: buffer[start..<start + inData.count]))
      }
    }
    return try plaintext.withUnsafeBytes { try seal($0, index: index) }
  }

  /// Seals content in memory, such as content that is sent with its commit.
  package static func sealSmall(
    metadata: [UInt8] = [], thumbnail: [UInt8] = [], data: [UInt8], padding: ContentPadding = .padme
  ) throws -> SealedContent {
    try ContentSealer(
      metadata: metadata, thumbnail: thumbnail, dataSize: UInt64(data.count), padding: padding
    ).sealAll(data)
  }

  package func sealAll(_ data: [UInt8]) throws -> SealedContent {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(layout.cipherLength))
    try push(data) { bytes += $0.bytes }
    let content = try finish(dataVersion: 1) { bytes += $0.bytes }
    return SealedContent(blobID: blobID, bytes: bytes, contentRoot: content.contentRoot, secrets: secrets)
  }
}

extension ContentSealer {
  private func startIfNeeded(_ emit: (SealedLeaf) throws -> Void) throws {
    guard position == 0 else { return }
    try head.withUnsafeBytes { try append($0, emit) }
  }

  private func append(_ bytes: UnsafeRawBufferPointer, _ emit: (SealedLeaf) throws -> Void) throws {
    position += UInt64(bytes.count)
    var rest = bytes[...]
    while !rest.isEmpty {
      // A whole leaf is sealed in place, without a copy.
      if pending.isEmpty, rest.count >= Self.leafPlaintextBytes {
        try emitLeaf(UnsafeRawBufferPointer(rebasing: rest.prefix(Self.leafPlaintextBytes)), emit)
        rest = rest.dropFirst(Self.leafPlaintextBytes)
        continue
      }
      let taken = min(rest.count, Self.leafPlaintextBytes - pending.count)
      pending.append(contentsOf: rest.prefix(taken))
      rest = rest.dropFirst(taken)
      if pending.count == Self.leafPlaintextBytes { try sealPending(emit) }
    }
  }

  private func appendPadding(upTo count: UInt64, _ emit: (SealedLeaf) throws -> Void) throws {
    let zeros = [UInt8](repeating: 0, count: Int(min(count, UInt64(Self.leafPlaintextBytes))))
    var missing = count
    while missing > 0 {
      let count = min(missing, UInt64(zeros.count))
      try zeros.withUnsafeBytes { try append(UnsafeRawBufferPointer(rebasing: $0.prefix(Int(count))), emit) }
      missing -= count
      padded += count
    }
  }

  private func sealPending(_ emit: (SealedLeaf) throws -> Void) throws {
    let leaf = pending
    pending.removeAll(keepingCapacity: true)
    try leaf.withUnsafeBytes { try emitLeaf($0, emit) }
  }

  private func emitLeaf(_ plaintext: UnsafeRawBufferPointer, _ emit: (SealedLeaf) throws -> Void) throws {
    let leaf = try seal(plaintext, index: tree.count)
    tree.append(leafHash: leaf.hash)
    try emit(leaf)
  }

  /// Seals one leaf. A full leaf has four full chunks. A shorter one is the last: it ends with a short chunk, which may
  /// be empty.
  private func seal(_ plaintext: UnsafeRawBufferPointer, index: UInt64) throws(CryptoFailure) -> SealedLeaf {
    let isFull = plaintext.count == Self.leafPlaintextBytes
    let chunks = isFull ? ContentGeometry.chunksPerLeaf : plaintext.count / ContentGeometry.chunkBytes + 1
    var bytes: [UInt8] = []
    bytes.reserveCapacity(
      ContentGeometry.prefixBytes + plaintext.count + chunks * ContentGeometry.tagBytes)
    if index == 0 { bytes += cipher.salt + cipher.commitment }
    for chunk in 0..<chunks {
      let start = chunk * ContentGeometry.chunkBytes
      let end = min(start + ContentGeometry.chunkBytes, plaintext.count)
      try cipher.seal(
        UnsafeRawBufferPointer(rebasing: plaintext[start..<end]),
        index: index * UInt64(ContentGeometry.chunksPerLeaf) + UInt64(chunk), into: &bytes)
    }
    return SealedLeaf(index: index, bytes: bytes, hash: leafHash(bytes))
  }
}

func contentContext(_ blobID: BlobID) -> [UInt8] { labelPrefix("content") + blobID.bytes }

func leafHash(_ bytes: [UInt8]) -> MerkleHash {
  bytes.withUnsafeBytes { leafHash($0) }
}

func leafHash(_ bytes: UnsafeRawBufferPointer) -> MerkleHash {
  var hasher = MerkleTree.LeafHasher()
  hasher.update(bufferPointer: bytes)
  return hasher.finalize()
}
