import Foundation
import Testing

@testable import zdc_todo

/// Pictures that the tests make.
enum Pictures {
  /// A JPEG of 8 × 8 grey pixels.
  static let jpeg =
    Data(
      base64Encoded: """
        /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8Q\
        EBD/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AVN//2Q==
        """) ?? Data()

  /// A PNG whose header says so many pixels, whatever follows.
  static func png(width: UInt32, height: UInt32) -> Data {
    func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
      let content = Array(name.utf8) + body
      return bytes(UInt32(body.count)) + content + bytes(crc(content))
    }
    return Data(
      [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", bytes(width) + bytes(height) + [8, 2, 0, 0, 0])
        + chunk("IDAT", [0x78, 0x9C, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01]) + chunk("IEND", []))
  }

  private static func bytes(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.bigEndian, Array.init) }

  private static func crc(_ bytes: [UInt8]) -> UInt32 {
    ~bytes.reduce(UInt32.max) { crc, byte in
      (0..<8).reduce(crc ^ UInt32(byte)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
    }
  }
}

@Suite(.timeLimit(.minutes(2))) struct PictureTests {
  static let hasVips = ["/usr/bin/vipsthumbnail", "/usr/local/bin/vipsthumbnail"]
    .contains(where: FileManager.default.isExecutableFile)

  @Test func onlyPicturesOfKnownFormats_andUpToALimit_areTaken() throws {
    #expect(try Picture(Pictures.jpeg).mediaType == "image/jpeg")
    #expect(try Picture(Pictures.png(width: 1, height: 1)).mediaType == "image/png")
    for bytes in [
      Data(), Data("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8), Data("<html>".utf8), Data([0xFF, 0xD8]),
    ] {
      #expect(throws: Failure.self) { try Picture(bytes) }
    }
    #expect(throws: Failure.self) { try Picture(Pictures.jpeg + Data(count: Picture.maxBytes)) }
  }

  @Test(.enabled(if: hasVips)) func aThumbnailIsAtMost256PixelsWide() async throws {
    let small = try #require(try await Picture(Pictures.jpeg).thumbnail())
    #expect(Picture.mediaType(small.prefix(12)) == "image/jpeg")
  }

  @Test(.enabled(if: hasVips)) func brokenAndHugePictures_areRefusedWithAReason() async throws {
    let broken = try Picture(Pictures.png(width: 400, height: 400))
    await #expect { _ = try await broken.thumbnail() } throws: { ($0 as? Failure)?.code == "brokenPicture" }
    let huge = try Picture(Pictures.png(width: 60_000, height: 60_000))
    await #expect { _ = try await huge.thumbnail() } throws: { ($0 as? Failure)?.code == "tooLarge" }
    let cut = try Picture(Pictures.jpeg.prefix(60))
    await #expect { _ = try await cut.thumbnail() } throws: { ($0 as? Failure)?.code == "brokenPicture" }
  }
}
