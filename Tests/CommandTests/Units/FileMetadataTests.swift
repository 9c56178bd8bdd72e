import Testing
import ZDCCommands

@Suite("Metadata of files")
struct FileMetadataTests {
  private let sample = FileMetadata(kind: .file, mode: 0o4755, time: FileTime(seconds: -2, nanoseconds: 999_999_999))

  @Test func theLayoutIsTheDocumentedOne() {
    let bytes: [UInt8] = [
      0x5A, 0x44, 0x46, 0x4D, 1, 1, 0x09, 0xED, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE, 0x3B, 0x9A, 0xC9, 0xFF,
    ]
    #expect(sample.bytes == bytes)
    #expect(FileMetadata(bytes) == sample)
  }

  @Test func fieldsOfALaterVersion_areIgnored() {
    var bytes = sample.bytes
    bytes[4] = 9
    #expect(FileMetadata(bytes + [1, 2, 3]) == sample)
  }

  @Test func anythingElse_isNotMetadata() {
    let good = sample.bytes
    for count in 0..<FileMetadata.size { #expect(FileMetadata(Array(good.prefix(count))) == nil) }
    func with(_ index: Int, _ byte: UInt8) -> [UInt8] {
      var bytes = good
      bytes[index] = byte
      return bytes
    }
    for bytes in [with(0, 0), with(4, 0), with(5, 0), with(5, 3), with(6, 0x10), with(16, 0x40)] {
      #expect(FileMetadata(bytes) == nil)
    }
  }
}
