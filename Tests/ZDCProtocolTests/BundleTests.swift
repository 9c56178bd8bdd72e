import Testing
import ZDCProtocol

@Suite struct BundleTests {
  private func refusalOfReading(_ bytes: [UInt8]) -> ZDCSecurityError.Code? {
    var reader = Bundle.Reader(bytes)
    return refusal { _ = try reader.all() }
  }

  @Test func itemsComeBackInOrderWithTheirTimes() throws {
    var generator = SeededGenerator(seed: 1)
    let record = NodeRecord(Samples.record(&generator, allFields: true))
    let link = Samples.link(&generator)
    let blob: BlobID = Samples.id16(&generator)
    var writer = Bundle.Writer(capacity: 10)
    writer.append(record: record.bytes, recordReceivedMs: 11, dataReceivedMs: 12)
    writer.append(link: link)
    writer.append(content: [1, 2, 3], blob: blob)
    #expect(writer.count == writer.bytes.count)
    #expect(writer.count == 5 + 16 + record.bytes.count + 5 + link.count + 5 + 16 + 3)
    var reader = Bundle.Reader(writer.bytes)
    #expect(try reader.next() == .record(recordReceivedMs: 11, dataReceivedMs: 12, record))
    #expect(try reader.next() == .link(try IdentityLink(link)))
    #expect(try reader.next() == .content(blob, [1, 2, 3]))
    #expect(try reader.next() == nil)
  }

  @Test func itemsOfAnotherWriterAreAppendedAsTheyAre() {
    var generator = SeededGenerator(seed: 2)
    let bundle = Samples.bundle(&generator)
    var writer = Bundle.Writer()
    writer.append(content: [1], blob: .zero)
    writer.append(items: bundle)
    #expect(writer.bytes == Codec.rawItem(.content, BlobID.zero.bytes + [1]) + bundle)
  }

  @Test func leavesAreHandedOnAsTheyAre() throws {
    var reader = Bundle.Reader(Codec.rawItem(.leaves, [9, 8, 7]))
    #expect(try reader.all() == [.leaves([9, 8, 7])])
  }

  @Test func noBytesAreAnEmptyBundle() throws {
    var reader = Bundle.Reader([])
    #expect(try reader.all().isEmpty)
  }

  @Test(arguments: [UInt8(0), 10, 255]) func anUnknownTypeIsNotSkipped(type: UInt8) {
    #expect(refusalOfReading([type, 0, 0, 0, 0]) == .nonCanonicalEncoding)
  }

  @Test(
    arguments: [
      (Bundle.ItemType.commit, Limits.commitBytes + 8), (.record, Limits.recordBytes + 16), (.acl, Limits.aclBytes),
      (.grant, Limits.grantBytes), (.content, Limits.inlineContentBytes + 16), (.link, Limits.linkBytes),
      (.leaves, Limits.pageBytes), (.aclEdit, Limits.aclEditBytes), (.attach, 64),
    ] as [(Bundle.ItemType, Int)])
  func eachTypeHasItsLimit(type: Bundle.ItemType, limit: Int) {
    func header(_ length: Int) -> [UInt8] {
      var writer = ByteWriter()
      writer.append(type.rawValue)
      writer.append(UInt32(length))
      return writer.bytes
    }
    // The bytes are missing: a length above the limit is refused as too long, one within it as truncated.
    #expect(refusalOfReading(header(limit + 1)) == .limitExceeded)
    #expect(refusalOfReading(header(limit)) == .nonCanonicalEncoding)
  }

  @Test func anItemTooShortForItsFixedFieldsIsRefused() {
    #expect(refusalOfReading(Codec.rawItem(.content, [UInt8](repeating: 0, count: 15))) == .nonCanonicalEncoding)
    #expect(refusalOfReading(Codec.rawItem(.commit, [UInt8](repeating: 0, count: 7))) == .nonCanonicalEncoding)
    #expect(refusalOfReading(Codec.rawItem(.record, [UInt8](repeating: 0, count: 15))) == .nonCanonicalEncoding)
  }
}
