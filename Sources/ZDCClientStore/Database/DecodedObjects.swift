/// The decoded objects of collections that the app registered with a limit.
final class DecodedObjects: Sendable {
  struct Item: Sendable {
    var key: String
    var object: any Sendable
  }

  private let caches: [String: RowCache<[UInt8], Item>]
  private let registry: CollectionRegistry

  init(_ registry: CollectionRegistry) {
    self.registry = registry
    caches = registry.limits.mapValues { RowCache(limit: $0) }
  }

  /// Returns the key and the object of a row.
  ///
  /// - Parameter type: The object's type, or `Any` for that of the collection.
  /// - Returns: Nil unless the collection was registered with a limit, for this type.
  func item<T>(
    of row: ObjectStore.SealedRow, _ type: T.Type, inCollection collection: String, _ objects: ObjectStore
  ) throws -> (key: String, object: T)? {
    guard let cache = caches[collection], let shared = try registry.entry(collection).shared,
      T.self == Any.self || ObjectIdentifier(T.self) == shared.type
    else { return nil }
    let item = try cache.value(of: row.rowKey, stored: row.sealed) {
      let entry = try objects.open(row)
      return Item(key: entry.key, object: try shared.decode(entry.json))
    }
    return (item.object as? T).map { (item.key, $0) }
  }
}
