import Testing
import ZDCProtocol

@testable import ZDCCrypto

/// Sealed content with its leaves, as an uploader has it.
struct ContentSample {
  let metadata, thumbnail, data: [UInt8]
  let bytes: [UInt8]
  let leaves: [SealedLeaf]
  let reference: ContentReference

  init(
    metadata: Int = 0, thumbnail: Int = 0, data: Int, padding: ContentPadding = .padme, slice: Int = 10_000
  ) throws {
    self.metadata = pattern(metadata)
    self.thumbnail = pattern(thumbnail)
    self.data = pattern(data)
    let sealer = try ContentSealer(
      metadata: self.metadata, thumbnail: self.thumbnail, dataSize: UInt64(data), padding: padding)
    var leaves: [SealedLeaf] = []
    for start in stride(from: 0, to: data, by: slice) {
      try sealer.push(self.data[start..<min(start + slice, data)]) { leaves.append($0) }
    }
    let content = try sealer.finish(dataVersion: 1) { leaves.append($0) }
    bytes = leaves.flatMap(\.bytes)
    self.leaves = leaves
    reference = try ContentReference(content: content, secrets: sealer.secrets)
  }

  var hashes: [MerkleHash] { leaves.map(\.hash) }

  /// Opens these bytes as a reader with the reference. Returns what was opened, and the error that ended the stream, if
  /// any.
  func open(
    _ bytes: [UInt8], hashes: [MerkleHash]? = nil, slice: Int = 7_000
  ) throws -> (OpenedContent, ZDCSecurityError.Code?) {
    var content = OpenedContent()
    let code = try securityCode {
      let leaves = try ContentLeaves(hashes ?? self.hashes, for: reference)
      let opener = ContentOpener(reference, leaves: leaves)
      for start in stride(from: 0, to: bytes.count, by: slice) {
        try opener.push(bytes[start..<min(start + slice, bytes.count)]) { section, part in
          switch section {
          case .metadata: content.metadata += part
          case .thumbnail: content.thumbnail += part
          case .data: content.data += part
          }
        }
      }
      try opener.finish()
    }
    return (content, code)
  }
}

@Suite struct ContentTests {
  private static let header = ContentGeometry.headerBytes

  /// Lengths around the boundaries of chunks and leaves.
  static let lengths: [Int] = {
    let borders = [0, 16_384, 32_768, 65_536, 131_072, 196_608].flatMap {
      [$0 - header - 1, $0 - header, $0 - header + 1]
    }
    return (borders + [0, 1, 65_535, 65_536, 1 << 20]).filter { $0 >= 0 }
  }()

  @Test(arguments: lengths)
  func everyLengthComesBack(count: Int) throws {
    for padding in [ContentPadding.none, .padme, .bucket(4_096)] {
      let sample = try ContentSample(metadata: 3, thumbnail: 5, data: count, padding: padding)
      #expect(UInt64(sample.bytes.count) == sample.reference.content.cipherLength)
      #expect(UInt64(sample.leaves.count) == sample.reference.layout.leafCount)
      let (content, code) = try sample.open(sample.bytes)
      #expect(code == nil)
      #expect(content == OpenedContent(metadata: sample.metadata, thumbnail: sample.thumbnail, data: sample.data))
      let geometry = (0..<sample.leaves.count).map {
        ContentGeometry.leafRange(UInt64($0), cipherLength: sample.reference.content.cipherLength).count
      }
      #expect(sample.leaves.map(\.bytes.count) == geometry)
    }
  }

  @Test func aContentIsOneSealUnderItsKeyAndBlob() throws {
    let sample = try ContentSample(metadata: 10, thumbnail: 20, data: 70_000)
    let plaintext = try Seal.open(
      key: sample.reference.secrets.key, label: "content", context: sample.reference.content.blobID.bytes,
      sample.bytes)
    let expected = sample.metadata + sample.thumbnail + sample.data
    #expect(Array(plaintext[64..<64 + expected.count]) == expected)
    #expect(plaintext[(64 + expected.count)...].allSatisfy { $0 == 0 })
    #expect(try ContentHeader(plaintext.prefix(64)).sizes == sample.reference.secrets.sizes)
  }

  @Test func theSliceSizeMakesNoDifferenceToTheLeaves() throws {
    for slice in [1, 777, 65_535, 65_536, 65_537, 200_000] {
      let sample = try ContentSample(data: 150_000, slice: slice)
      #expect(try sample.open(sample.bytes, slice: slice).1 == nil)
      #expect(sample.leaves.map(\.index) == [0, 1, 2])
    }
  }

  @Test func dataThatIsNotContiguousIsTakenToo() throws {
    let sealer = try ContentSealer(dataSize: 3)
    try sealer.push((1...3).lazy.map { UInt8($0) }) { _ in }
    var bytes: [UInt8] = []
    let content = try sealer.finish(dataVersion: 1) { bytes += $0.bytes }
    let reference = try ContentReference(content: content, secrets: sealer.secrets)
    #expect(try ContentOpener.openSmall(bytes, reference).data == [1, 2, 3])
  }

  @Test func aSourceOfAnotherLengthThanAnnouncedIsFound() throws {
    let short = try ContentSealer(dataSize: 10)
    try short.push(pattern(9)) { _ in }
    #expect(throws: CryptoFailure.sourceChanged) { try short.finish(dataVersion: 1) { _ in } }
    let long = try ContentSealer(dataSize: 10)
    #expect(throws: CryptoFailure.sourceChanged) { try long.push(pattern(11)) { _ in } }
    let done = try ContentSealer(dataSize: 1)
    try done.push([1]) { _ in }
    _ = try done.finish(dataVersion: 1) { _ in }
    #expect(throws: CryptoFailure.sourceChanged) { try done.push([1]) { _ in } }
    #expect(throws: CryptoFailure.sourceChanged) { try done.finish(dataVersion: 1) { _ in } }
  }

  @Test func aLeafIsSealedAgainByteForByte() throws {
    let data = pattern(150_000)
    let sealer = try ContentSealer(metadata: pattern(70_000), thumbnail: pattern(100), dataSize: UInt64(data.count))
    var leaves: [SealedLeaf] = []
    try sealer.push(data) { leaves.append($0) }
    _ = try sealer.finish(dataVersion: 1) { leaves.append($0) }
    for leaf in leaves {
      let again = try sealer.leaf(leaf.index) { offset, buffer in
        buffer.copyBytes(from: data[Int(offset)..<Int(offset) + buffer.count])
      }
      #expect(again.bytes == leaf.bytes && again.hash == leaf.hash)
    }
    #expect(throws: CryptoFailure.invalidParameter) { try sealer.leaf(UInt64(leaves.count)) { _, _ in } }
  }

  @Test func twoSealsOfOneFileShareNoBlock() throws {
    let one = try ContentSealer.sealSmall(data: pattern(4_000))
    let two = try ContentSealer.sealSmall(data: pattern(4_000))
    func blocks(_ bytes: [UInt8]) -> Set<[UInt8]> {
      Set(stride(from: 0, to: bytes.count - 15, by: 16).map { Array(bytes[$0..<$0 + 16]) })
    }
    #expect(blocks(one.bytes).isDisjoint(with: blocks(two.bytes)))
    #expect(one.blobID != two.blobID && one.contentRoot != two.contentRoot)
  }

  @Test func smallContentRidesAlongUpTo64KiBOfCiphertext() throws {
    #expect(try ContentSealer.sealSmall(data: pattern(60_000), padding: .none).isInline)
    let largest = 65_536 - 56 - 4 * 16 - 64
    #expect(try ContentSealer.sealSmall(data: pattern(largest), padding: .none).isInline)
    #expect(try !ContentSealer.sealSmall(data: pattern(largest + 1), padding: .none).isInline)
  }

  @Test func sectionsAboveTheirLimitAreRefusedBeforeAnyWork() throws {
    let large = [UInt8](repeating: 0, count: Limits.metadataBytes + 1)
    #expect(try securityCode { _ = try ContentSealer(metadata: large, dataSize: 0) } == .limitExceeded)
    #expect(try securityCode { _ = try ContentSealer(thumbnail: large, dataSize: 0) } == .limitExceeded)
    #expect(try securityCode { _ = try ContentSealer(dataSize: 32 << 30) } == .limitExceeded)
    #expect(try securityCode { _ = try ContentSealer(dataSize: .max) } == .limitExceeded)
    #expect(try securityCode { _ = try ContentSealer(dataSize: 1, padding: .bucket(.max)) } == .limitExceeded)
  }

  // MARK: padding

  @Test func padmeKeepsLengthsWithinTwelvePercent() {
    for length in [64, 65, 100, 1_000, 16_384, 1_000_000, 123_456_789, 32 << 30] as [UInt64] {
      let padded = ContentPadding.padme.paddedLength(of: length)
      #expect(padded >= length && Double(padded) <= Double(length) * 1.12)
      #expect(ContentPadding.padme.paddedLength(of: padded) == padded)
    }
    // The paper's example: 9 bits stay visible in the mantissa of a number between 2^8 and 2^9.
    #expect(ContentPadding.padme.paddedLength(of: 1) == 1)
    #expect(ContentPadding.padme.paddedLength(of: 9) == 10)
    #expect(ContentPadding.padme.paddedLength(of: 257) == 272)
    #expect(ContentPadding.padme.paddedLength(of: 1_000_001) == 1_015_808)
  }

  @Test func bucketsAndNone() {
    #expect(ContentPadding.none.paddedLength(of: 65) == 65)
    #expect(ContentPadding.bucket(100).paddedLength(of: 200) == 200)
    #expect(ContentPadding.bucket(100).paddedLength(of: 201) == 300)
    #expect(ContentPadding.bucket(0).paddedLength(of: 7) == 7)
    #expect(ContentPadding.bucket(.max).paddedLength(of: 7) == .max)
  }

  @Test func ciphertextLengthIsAFunctionOfThePaddedLength() throws {
    var lengths: [UInt64: Set<UInt64>] = [:]
    for data in 100..<400 {
      let layout = try ContentLayout(sizes: ContentSizes(data: UInt64(data)), padding: .padme)
      let padded = ContentPadding.padme.paddedLength(of: UInt64(data) + 64)
      lengths[padded, default: []].insert(layout.cipherLength)
    }
    #expect(lengths.values.allSatisfy { $0.count == 1 })
    #expect(lengths.count < 30)
  }

  // MARK: attacks

  @Test func flippedBitsAnywhereAreContentHashMismatch() throws {
    let sample = try ContentSample(metadata: 100, thumbnail: 100, data: 140_000)
    for bit in stride(from: 5, to: sample.bytes.count * 8, by: 8_191) {
      let (content, code) = try sample.open(sample.bytes.flipping(bit: bit))
      #expect(code == .contentHashMismatch)
      #expect(sample.data.starts(with: content.data), "only a verified prefix was handed out")
    }
  }

  @Test func aStreamThatEndsEarlyOrLateEndsWithAnError() throws {
    let sample = try ContentSample(data: 140_000)
    for cut in [0, 1, 56, 16_456, 65_656, 65_657, 131_256, sample.bytes.count - 1] {
      #expect(try sample.open(Array(sample.bytes.prefix(cut))).1 == .contentTruncated)
    }
    #expect(try sample.open(sample.bytes + [0]).1 == .contentTrailingData)
    #expect(try sample.open(sample.bytes + sample.leaves[1].bytes).1 == .contentTrailingData)
  }

  @Test func anOpenerThatFailedStaysFailed() throws {
    let sample = try ContentSample(data: 10)
    let opener = ContentOpener(sample.reference, leaves: try ContentLeaves(for: sample.reference))
    let code = try securityCode { try opener.push(sample.bytes.flipping(bit: 0)) { _, _ in } }
    #expect(code == .contentHashMismatch)
    #expect(try securityCode { try opener.push(sample.bytes) { _, _ in } } == .contentHashMismatch)
    #expect(try securityCode { try opener.finish() } == .contentHashMismatch)
  }

  @Test func leafHashesThatDoNotMakeTheRootAreRefused() throws {
    let sample = try ContentSample(data: 140_000)
    let hashes = sample.hashes
    for wrong in [[], Array(hashes.dropLast()), hashes + [hashes[0]], Array(hashes.reversed())] {
      #expect(try sample.open(sample.bytes, hashes: wrong).1 == .contentHashMismatch)
    }
    let bytes = hashes.flatMap(\.bytes)
    #expect(try ContentLeaves(bytes: bytes, for: sample.reference).hashes == hashes)
    for wrong in [bytes.dropLast(), bytes + [0]] {
      #expect(try securityCode { _ = try ContentLeaves(bytes: wrong, for: sample.reference) } == .contentHashMismatch)
    }
  }

  /// A reader knows the content key. With the server's help, they can forge leaves that match a hash list, but not the
  /// root.
  @Test func swappedChunksWithARecomputedRootFailAtTheirTags() throws {
    let sample = try ContentSample(data: 140_000)
    var bytes = sample.bytes
    let (first, second) = (56..<56 + 16_400, 56 + 16_400..<56 + 32_800)
    bytes.replaceSubrange(first, with: sample.bytes[second])
    bytes.replaceSubrange(second, with: sample.bytes[first])
    #expect(try open(bytes, like: sample) == .chunkAuthFailed)
  }

  /// Opens other bytes under a record that was made to match them.
  private func open(
    _ bytes: [UInt8], like sample: ContentSample, _ change: (inout ContentSecrets) -> Void = { _ in },
    blobID: BlobID? = nil
  ) throws -> ZDCSecurityError.Code? {
    let length = UInt64(bytes.count)
    let hashes = (0..<ContentGeometry.leafCount(cipherLength: length)).map { index in
      let range = ContentGeometry.leafRange(index, cipherLength: length)
      return MerkleTree.leafHash(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    }
    var content = sample.reference.content
    content.contentRoot = ContentRoot(reinterpreting: MerkleTree.root(leafHashes: hashes))
    content.cipherLength = length
    content.blobID = blobID ?? content.blobID
    var secrets = sample.reference.secrets
    change(&secrets)
    return try securityCode {
      _ = try ContentOpener.openSmall(bytes, try ContentReference(content: content, secrets: secrets))
    }
  }

  @Test func anotherKeyOrBlobFailsAtTheCommitment() throws {
    let sample = try ContentSample(data: 100)
    #expect(try open(sample.bytes, like: sample) == nil)
    #expect(try open(sample.bytes, like: sample, { $0.key = .random() }) == .commitmentMismatch)
    #expect(try open(sample.bytes, like: sample, blobID: .random()) == .commitmentMismatch)
  }

  @Test func aHeaderThatDisagreesWithTheRecordIsFound() throws {
    let sample = try ContentSample(metadata: 8, thumbnail: 8, data: 100)
    #expect(try open(sample.bytes, like: sample, { $0.sizes.data -= 1 }) == .contentHeaderInvalid)
    #expect(
      try open(
        sample.bytes, like: sample,
        {
          $0.sizes.metadata += 1
          $0.sizes.data -= 1
        }) == .contentHeaderInvalid)
    #expect(try open(sample.bytes, like: sample, { $0.thumbnailTag = .random() }) == .contentHeaderInvalid)
    #expect(try open(sample.bytes, like: sample, { $0.sizes.data = 1 << 30 }) == .contentHeaderInvalid)
  }

  /// Opens a plaintext of any form that a hostile writer has sealed correctly under the right key.
  private func openForged(_ change: (inout [UInt8]) -> Void) throws -> ZDCSecurityError.Code? {
    let sample = try ContentSample(metadata: 1, thumbnail: 1, data: 90)
    let key = sample.reference.secrets.key
    let context = sample.reference.content.blobID.bytes
    var plaintext = try Seal.open(key: key, label: "content", context: context, sample.bytes)
    change(&plaintext)
    return try open(try Seal.seal(key: key, label: "content", context: context, plaintext), like: sample)
  }

  @Test func everyByteOfTheHeaderCounts() throws {
    #expect(try openForged { _ in } == nil)
    for index in 0..<64 {
      #expect(try openForged { $0[index] ^= 1 } == .contentHeaderInvalid, "byte \(index)")
    }
  }

  @Test func paddingThatIsNotZeroIsRefused() throws {
    #expect(try openForged { $0[$0.count - 1] = 1 } == .contentHeaderInvalid)
    #expect(try openForged { $0.append(0) } == .contentHeaderInvalid)
  }

  @Test func aHeaderOfAnotherLengthIsRefused() throws {
    let header = ContentHeader(sizes: ContentSizes(data: 1), paddingSize: 0, thumbnailTag: .zero).bytes
    #expect(header.count == 64)
    #expect(try securityCode { _ = try ContentHeader(header + [0]) } == .contentHeaderInvalid)
    #expect(try securityCode { _ = try ContentHeader(header.dropLast()) } == .contentHeaderInvalid)
  }

  @Test func smallContentOfAnotherLengthIsRefused() throws {
    let sample = try ContentSample(data: 100)
    let short = try securityCode { _ = try ContentOpener.openSmall(sample.bytes.dropLast(), sample.reference) }
    #expect(short == .contentTruncated)
    let long = try securityCode { _ = try ContentOpener.openSmall(sample.bytes + [0], sample.reference) }
    #expect(long == .contentTrailingData)
  }

  @Test func anErrorOfTheSinkComesThrough() throws {
    struct Full: Error {}
    let sample = try ContentSample(data: 100)
    let opener = ContentOpener(sample.reference, leaves: try ContentLeaves(for: sample.reference))
    #expect(throws: Full.self) { try opener.push(sample.bytes) { _, _ in throw Full() } }
  }
}
