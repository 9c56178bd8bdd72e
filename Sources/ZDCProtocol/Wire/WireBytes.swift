#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Bytes inside a JSON body: standard base64 with padding.
package struct WireBytes: Codable, Sendable, Hashable {
  package var bytes: [UInt8]

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Decodes standard base64 with padding. Throws `DecodingError` for other text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let data = Data(base64Encoded: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not base64")
    }
    bytes = [UInt8](data)
  }

  /// Encodes standard base64 with padding.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Data(bytes).base64EncodedString())
  }
}

// In JSON, IDs and hashes are z-base-32 text.
extension Bytes16: Codable {
  /// Decodes the form of ``text``. Throws `DecodingError` if it is not canonical.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = Self(text: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an id of 16 bytes")
    }
    self = value
  }

  /// Encodes the form of ``text``.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

extension Bytes32: Codable {
  /// Decodes the form of ``text``. Throws `DecodingError` if it is not canonical.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = Self(text: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an id of 32 bytes")
    }
    self = value
  }

  /// Encodes the form of ``text``.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
