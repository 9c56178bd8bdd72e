internal import Foundation
package import ZDCSupport

/// The types that the app registered for its collections.
package struct CollectionRegistry: Sendable {
  package struct Entry: Sendable {
    let typeName: String
    package let decode: @Sendable (_ json: [UInt8]) throws -> any Codable
    package let matches: @Sendable (Any) -> Bool
    var shared: Shared?
  }

  /// Decodes objects that several transactions may share.
  struct Shared: Sendable {
    let type: ObjectIdentifier
    let decode: @Sendable (_ json: [UInt8]) throws -> any Sendable
    /// Maximum number of decoded objects in memory.
    let limit: Int
  }

  private var entries: [String: Entry] = [:]

  package init() {}

  package mutating func register<T: ZDCStorable>(_ type: T.Type, inCollection collection: String) {
    entries[collection] = Entry(
      typeName: "\(type)", decode: { try ObjectCoding.decode(T.self, $0) }, matches: { $0 is T })
  }

  package mutating func register<T: ZDCStorable & Sendable>(
    _ type: T.Type, inCollection collection: String, cacheLimit: Int
  ) {
    register(type, inCollection: collection)
    entries[collection]?.shared = Shared(
      type: ObjectIdentifier(T.self), decode: { try ObjectCoding.decode(T.self, $0) }, limit: cacheLimit)
  }

  /// The limits of the collections that have one.
  var limits: [String: Int] { entries.compactMapValues(\.shared?.limit).filter { $0.value > 0 } }

  /// Returns the registration of a collection.
  ///
  /// - Throws: `ZDCError` with `collectionNotRegistered`.
  package func entry(_ collection: String) throws(ZDCError) -> Entry {
    guard let entry = entries[collection] else { throw ZDCError(.collectionNotRegistered, detail: collection) }
    return entry
  }

  /// The collections of ``ZDCReadTransaction/frameworkObject(forKey:inCollection:)``, which accept no app objects.
  private static let ofFramework = [kZDCCollection_Nodes, kZDCCollection_Users]

  /// Checks the object's type. An unregistered collection accepts any type, and is read with the typed calls.
  package func check(_ object: some Codable, inCollection collection: String) throws(ZDCError) {
    guard !Self.ofFramework.contains(collection) else {
      throw ZDCError(.collectionTypeMismatch, detail: "\(collection) holds the framework's own objects")
    }
    guard let entry = entries[collection], !entry.matches(object) else { return }
    throw ZDCError(.collectionTypeMismatch, detail: "\(collection) is registered for \(entry.typeName)")
  }
}

/// Encodes app objects as JSON, so that a type may gain optional fields between versions.
enum ObjectCoding {
  package static func encode(_ object: some Encodable) throws(ZDCError) -> [UInt8] {
    do { return [UInt8](try JSONEncoder().encode(object)) } catch {
      throw ZDCError(.objectNotEncodable, underlying: error)
    }
  }

  package static func decode<T: Decodable>(_ type: T.Type, _ bytes: [UInt8]) throws(ZDCError) -> T {
    do { return try JSONDecoder().decode(T.self, from: Data(bytes)) } catch {
      throw ZDCError(.objectNotDecodable, detail: "\(T.self)", underlying: error)
    }
  }
}
