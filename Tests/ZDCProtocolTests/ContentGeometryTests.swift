import Testing
import ZDCProtocol

/// Chunks, leaves and parts at their boundaries (PROTOCOL, "Content").
@Suite struct ContentGeometryTests {
  @Test(
    arguments: [
      (UInt64(0), UInt64(72)), (1, 73), (16_383, 16_455), (16_384, 16_472), (16_385, 16_473), (32_768, 32_872),
      (65_535, 65_655), (65_536, 65_672), (1 << 20, 1_049_672),
    ] as [(UInt64, UInt64)])
  func sealedLengthCountsOneShortChunkAtTheEnd(clear: UInt64, sealed: UInt64) {
    #expect(ContentGeometry.sealedLength(of: clear) == sealed)
  }

  @Test(
    arguments: [
      (UInt64(136), UInt64(1)), (65_656, 1), (65_657, 2), (131_256, 2), (131_257, 3),
    ] as [(UInt64, UInt64)])
  func aNewLeafBeginsOneByteAfterTheBoundary(length: UInt64, leaves: UInt64) {
    #expect(ContentGeometry.leafCount(cipherLength: length) == leaves)
  }

  @Test func constantsAgreeWithEachOther() {
    #expect(ContentGeometry.firstLeafBytes == 65_656)
    #expect(ContentGeometry.leafBytes == 65_600)
    #expect(ContentGeometry.sealedLength(of: UInt64(ContentGeometry.headerBytes)) == 136)
  }

  private static let lengths: [UInt64] = [
    136, 65_655, 65_656, 65_657, 131_256, 131_257, 8_396_856, 8_396_857, 100 << 20, 10 << 30, Limits.contentCipherBytes,
  ]

  @Test(arguments: lengths) func leavesCoverTheContentWithoutGapOrOverlap(length: UInt64) {
    let count = ContentGeometry.leafCount(cipherLength: length)
    let sampled = (0..<min(count, 300)).map { $0 } + (count - min(count, 300)..<count).map { $0 }
    for index in sampled {
      let range = ContentGeometry.leafRange(index, cipherLength: length)
      #expect(!range.isEmpty)
      let next = ContentGeometry.leafRange(index + 1, cipherLength: length)
      #expect(index + 1 == count ? range.upperBound == length : range.upperBound == next.lowerBound)
    }
    #expect(ContentGeometry.leafRange(0, cipherLength: length).lowerBound == 0)
    #expect(ContentGeometry.leafRange(count, cipherLength: length).isEmpty)
  }

  @Test(arguments: lengths) func partsCoverTheContentAndEndOnLeafBorders(length: UInt64) {
    let count = ContentGeometry.partCount(cipherLength: length)
    #expect((1...Limits.partsPerBlob).contains(count))
    let perPart = ContentGeometry.leavesPerPart(cipherLength: length)
    var end: UInt64 = 0
    for index in 0..<count {
      let range = ContentGeometry.partRange(index, cipherLength: length)
      #expect(range.lowerBound == end)
      #expect(range.lowerBound == ContentGeometry.leafRange(UInt64(index) * perPart, cipherLength: length).lowerBound)
      end = range.upperBound
    }
    #expect(end == length)
    #expect(ContentGeometry.partRange(count, cipherLength: length).isEmpty)
  }

  @Test func aPartIsAboutEightMegabytesAndGrowsWhenThereWouldBeTooMany() {
    #expect(ContentGeometry.leavesPerPart(cipherLength: 1 << 30) == 128)
    #expect(ContentGeometry.partRange(0, cipherLength: 1 << 30) == 0..<8_396_856)
    #expect(ContentGeometry.partRange(1, cipherLength: 1 << 30) == 8_396_856..<16_793_656)
    #expect(ContentGeometry.leavesPerPart(cipherLength: 1 << 40) > 128)
    #expect(ContentGeometry.partCount(cipherLength: 1 << 40) <= Limits.partsPerBlob)
  }

  /// An index comes from a URL and a length from a header: neither may cause an overflow.
  @Test func hostileIndicesAndLengthsNeverTrap() {
    for length in [UInt64(0), 1, 136, 1 << 35, .max] {
      for index in [UInt64(0), 1, 1 << 40, 1 << 62, .max] {
        let range = ContentGeometry.leafRange(index, cipherLength: length)
        #expect(range.upperBound <= length)
      }
      for index in [Int.min, -1, 0, 10_000, Int.max] {
        #expect(ContentGeometry.partRange(index, cipherLength: length).upperBound <= length)
      }
      #expect(ContentGeometry.sealedLength(of: length) >= length)
    }
  }
}
