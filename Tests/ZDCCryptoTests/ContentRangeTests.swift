import Testing
import ZDCProtocol

@testable import ZDCCrypto

@Suite struct ContentRangeTests {
  private let sample: ContentSample

  init() throws { sample = try ContentSample(metadata: 50_000, thumbnail: 30_000, data: 400_000) }

  private func reader() throws -> ContentReader {
    ContentReader(sample.reference, leaves: try ContentLeaves(sample.hashes, for: sample.reference))
  }

  private func fetch(_ plan: ContentRangePlan) -> [[UInt8]] {
    plan.fetches.map { Array(sample.bytes[Int($0.lowerBound)..<Int($0.upperBound)]) }
  }

  @Test func eachSectionIsReadAlone() throws {
    var reader = try reader()
    for (section, expected) in [
      (ContentSection.metadata, sample.metadata), (.thumbnail, sample.thumbnail), (.data, sample.data),
    ] {
      let plan = reader.plan(section)
      #expect(try reader.read(plan, fetched: fetch(plan)) == expected)
    }
  }

  @Test func randomRangesAreSlicesOfTheWhole() throws {
    var random = SeededSource("ranges")
    for _ in 0..<150 {
      var reader = try reader()
      let bounds = [UInt64.random(in: 0...400_000, using: &random), .random(in: 0...400_000, using: &random)].sorted()
      let plan = try #require(reader.plan(bounds[0]..<bounds[1], of: .data))
      let bytes = try reader.read(plan, fetched: fetch(plan))
      #expect(bytes == Array(sample.data[Int(bounds[0])..<Int(bounds[1])]))
    }
  }

  @Test func aFarRangeCostsTheFirstLeafOnceAndTheCoveringOnes() throws {
    var reader = try reader()
    let plan = try #require(reader.plan(300_000..<300_010, of: .data))
    #expect(plan.leaves == 5..<6)
    #expect(plan.fetches == [0..<65_656, 328_056..<393_656])
    _ = try reader.read(plan, fetched: fetch(plan))
    #expect(!reader.needsFirstLeaf)
    let next = try #require(reader.plan(300_000..<300_010, of: .data))
    #expect(next.fetches == [328_056..<393_656])
    #expect(try reader.read(next, fetched: fetch(next)) == Array(sample.data[300_000..<300_010]))
  }

  @Test func neighbouringLeavesAreOneFetch() throws {
    let reader = try reader()
    #expect(reader.plan(.metadata).fetches == [0..<65_656])
    #expect(reader.plan(.thumbnail).fetches == [0..<131_256])
  }

  @Test func outsideASectionThereIsNothing() throws {
    let reader = try reader()
    #expect(reader.plan(0..<50_001, of: .metadata) == nil)
    #expect(reader.plan(400_000..<400_000, of: .data)?.fetches == [])
  }

  @Test func emptySectionsNeedNoRequest() throws {
    let bare = try ContentSample(data: 10)
    var reader = ContentReader(bare.reference, leaves: try ContentLeaves(for: bare.reference))
    let plan = reader.plan(.thumbnail)
    #expect(plan.fetches.isEmpty)
    #expect(try reader.read(plan, fetched: []) == [])
  }

  @Test func flippedBitsInARangeAreFound() throws {
    let plan = try reader().plan(.thumbnail)
    var fetched = fetch(plan)
    for bit in stride(from: 1, to: fetched[0].count * 8, by: 65_521) {
      var reader = try reader()
      fetched[0] = fetch(plan)[0].flipping(bit: bit)
      #expect(try securityCode { _ = try reader.read(plan, fetched: fetched) } == .contentHashMismatch)
    }
  }

  @Test func shortLongAndMissingAnswersAreFound() throws {
    var reader = try reader()
    let plan = reader.plan(.thumbnail)
    let bytes = fetch(plan)[0]
    #expect(try securityCode { _ = try reader.read(plan, fetched: []) } == .contentTruncated)
    #expect(try securityCode { _ = try reader.read(plan, fetched: [bytes.dropLast()]) } == .contentTruncated)
    #expect(try securityCode { _ = try reader.read(plan, fetched: [bytes + [0]]) } == .contentTrailingData)
  }

  @Test func leavesAreOpenedFirstOneFirstAndWhole() throws {
    var reader = try reader()
    let (first, second) = (sample.leaves[0].bytes, sample.leaves[1].bytes)
    #expect(try securityCode { _ = try reader.open(leaf: 1, second) } == .commitmentMismatch)
    #expect(try securityCode { _ = try reader.open(leaf: 0, first.dropLast()) } == .contentTruncated)
    #expect(try securityCode { _ = try reader.open(leaf: 0, first + [0]) } == .contentTrailingData)
    #expect(try securityCode { _ = try reader.open(leaf: 99, first) } == .contentTrailingData)
    #expect(try reader.open(leaf: 0, first).count == 65_536)
    #expect(try reader.open(leaf: 1, second).count == 65_536)
  }

  /// The record names a different thumbnail from the one in the content.
  @Test func aThumbnailThatIsNotTheNamedOneIsFound() throws {
    let thumbnail = pattern(40)
    let blobID = BlobID.random()
    let tag = ThumbnailTag.random()
    let sizes = ContentSizes(thumbnail: 40, data: 0)
    let layout = try ContentLayout(sizes: sizes, padding: .none)
    let header = ContentHeader(sizes: sizes, paddingSize: 0, thumbnailTag: tag)
    let key = ContentKey.random()
    let bytes = try Seal.seal(key: key, label: "content", context: blobID.bytes, header.bytes + thumbnail)
    let content = NodeRecord.Content(
      dataVersion: 1, blobID: blobID, cipherLength: layout.cipherLength,
      contentRoot: ContentRoot(reinterpreting: MerkleTree.leafHash(bytes)))
    let secrets = ContentSecrets(key: key, sizes: sizes, thumbnailTag: tag)
    let reference = try ContentReference(content: content, secrets: secrets)
    var reader = ContentReader(reference, leaves: try ContentLeaves(for: reference))
    let plan = reader.plan(.thumbnail)
    #expect(try securityCode { _ = try reader.read(plan, fetched: [bytes]) } == .contentHeaderInvalid)
    #expect(try securityCode { _ = try ContentOpener.openSmall(bytes, reference) } == .contentHeaderInvalid)
  }
}
