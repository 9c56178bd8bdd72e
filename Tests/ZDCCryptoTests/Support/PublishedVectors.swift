import Foundation
import Testing

/// Test vectors published by others, in the folder that `ZDC_VECTORS` names. They are not part of this repository.
enum PublishedVectors {
  private static let environment = ProcessInfo.processInfo.environment

  static let folder: URL? = environment["ZDC_VECTORS"].map { URL(fileURLWithPath: $0, isDirectory: true) }

  /// Returns the bytes of a published file, or nil if there is no folder. In that case it prints a warning, and fails
  /// the test if `ZDC_REQUIRE_VECTORS=1`.
  static func data(_ path: String) throws -> Data? {
    guard let folder else {
      FileHandle.standardError.write(
        Data("*** ZDC_VECTORS is not set: NO published vectors of \(path) ran ***\n".utf8))
      #expect(environment["ZDC_REQUIRE_VECTORS"] != "1", "published vectors are required and ZDC_VECTORS is not set")
      return nil
    }
    return try Data(contentsOf: folder.appendingPathComponent(path))
  }

  static func wycheproof<Group: Decodable>(_ name: String, _: Group.Type) throws -> [Group]? {
    guard let data = try data("wycheproof/\(name)_test.json") else { return nil }
    let file = try JSONDecoder().decode(WycheproofFile<Group>.self, from: data)
    return file.testGroups
  }
}

struct WycheproofFile<Group: Decodable>: Decodable {
  let testGroups: [Group]
}

/// Hexadecimal text of a vector.
struct Hex: Decodable, Hashable {
  let bytes: [UInt8]

  init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let bytes = [UInt8](hex: text) else {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "not hexadecimal"))
    }
    self.bytes = bytes
  }
}

extension [UInt8] {
  init?(hex: String) {
    var (bytes, high): ([UInt8], UInt8?) = ([], nil)
    bytes.reserveCapacity(hex.utf8.count / 2)
    for digit in hex.utf8 {
      let value: UInt8
      switch digit {
      case 0x30...0x39: value = digit - 0x30
      case 0x41...0x46: value = digit - 0x37
      case 0x61...0x66: value = digit - 0x57
      default: return nil
      }
      if let first = high { bytes.append(first << 4 | value) }
      high = high == nil ? value : nil
    }
    guard high == nil else { return nil }
    self = bytes
  }

  /// Returns a copy with one bit flipped.
  func flipping(bit: Int) -> [UInt8] {
    var copy = self
    copy[bit / 8] ^= 1 << UInt8(bit % 8)
    return copy
  }
}
