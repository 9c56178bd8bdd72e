public import Foundation
internal import ZDCSupport

/// A value that can be stored as a tag: text, a number, `Data`, `URL`, `Date` or `UUID`.
///
/// Reading a tag returns the type that was stored.
///
/// Do not conform your own types: only the types of this list can be stored.
///
/// ```swift
/// cloud.setTag(3, forNodeID: node.uuid, withIdentifier: "com.example.stars")
/// let stars = cloud.tag(forNodeID: node.uuid, withIdentifier: "com.example.stars") as? Int  // not as? Int64
/// ```
public protocol ZDCTagValue: Codable, Sendable {}

extension String: ZDCTagValue {}
extension Bool: ZDCTagValue {}
extension Int: ZDCTagValue {}
extension Int8: ZDCTagValue {}
extension Int16: ZDCTagValue {}
extension Int32: ZDCTagValue {}
extension Int64: ZDCTagValue {}
extension UInt: ZDCTagValue {}
extension UInt8: ZDCTagValue {}
extension UInt16: ZDCTagValue {}
extension UInt32: ZDCTagValue {}
extension UInt64: ZDCTagValue {}
extension Float: ZDCTagValue {}
extension Double: ZDCTagValue {}
extension Data: ZDCTagValue {}
extension URL: ZDCTagValue {}
extension Date: ZDCTagValue {}
extension UUID: ZDCTagValue {}

/// Tags as bytes: one for the type, then JSON of a list with the value.
enum TagCoding {
  /// The order is the format: append only.
  private static let types: [any ZDCTagValue.Type] = [
    String.self, Bool.self, Int.self, Int32.self, Int64.self, UInt.self, UInt32.self, UInt64.self, Float.self,
    Double.self, Data.self, URL.self, Date.self, UUID.self, Int8.self, Int16.self, UInt8.self, UInt16.self,
  ]

  /// - Throws: `objectNotEncodable` for a type of the app's, or for a number that is none.
  package static func encode(_ value: any ZDCTagValue) throws -> [UInt8] {
    guard let code = types.firstIndex(where: { $0 == type(of: value) }) else {
      throw ZDCError(.objectNotEncodable, detail: "tags: text, numbers, Data, URL, Date, UUID")
    }
    return [UInt8(code)] + (try ObjectCoding.encode([Boxed(value)]))
  }

  package static func decode(_ bytes: [UInt8]) throws -> any ZDCTagValue {
    guard let code = bytes.first, Int(code) < types.count else { throw ZDCError(.corruptDatabase) }
    return try types[Int(code)].decodeTag(Array(bytes.dropFirst()))
  }

  private struct Boxed: Encodable {
    let value: any ZDCTagValue
    init(_ value: any ZDCTagValue) { self.value = value }

    // Through a container: asked directly, Data, Date and URL would be coded in another way than they are decoded.
    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(value)
    }
  }
}

extension ZDCTagValue {
  fileprivate static func decodeTag(_ json: [UInt8]) throws -> any ZDCTagValue {
    guard let value = try ObjectCoding.decode([Self].self, json).first else { throw ZDCError(.corruptDatabase) }
    return value
  }
}
