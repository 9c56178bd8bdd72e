internal import Foundation

/// Encodes the app's values as JSON. Always as arrays, so that a single string or nil is a valid document for every
/// JSON library.
enum ValueCoding {
  /// - Throws: `notEncodable` if a value cannot be encoded.
  static func encode<T: Encodable>(_ values: [T]) throws(ZDCSyncableError) -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    do { return try encoder.encode(values) } catch { throw ZDCSyncableError(.notEncodable) }
  }

  /// - Throws: `malformedChangeset` if it is not JSON, `incorrectType` if it is JSON of another type.
  static func decode<T: Decodable>(_ type: [T].Type, _ json: Data) throws(ZDCSyncableError) -> [T] {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    do {
      return try decoder.decode(type, from: json)
    } catch DecodingError.typeMismatch, DecodingError.valueNotFound, DecodingError.keyNotFound {
      throw ZDCSyncableError(.incorrectType)
    } catch {
      throw ZDCSyncableError(.malformedChangeset)
    }
  }

  /// Returns a key as a path component.
  static func text(_ key: some Encodable) throws(ZDCSyncableError) -> String {
    if let text = key as? String { return text }
    return String(decoding: try encode([key]).dropFirst().dropLast(), as: UTF8.self)
  }

  /// Returns the values in an order that is the same in every run, unlike that of a set or dictionary.
  static func sorted<T: Encodable>(_ values: some Sequence<T>) throws(ZDCSyncableError) -> [T] {
    let values = Array(values)
    if let texts = values as? [String] {
      return texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } as? [T] ?? values
    }
    var pairs: [(text: String, value: T)] = []
    for value in values { pairs.append((try text(value), value)) }
    return pairs.sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }.map(\.value)
  }
}
