/// Tracks changes of one property of a ``ZDCRecord``.
///
/// The property is merged as a whole, unless its type is itself ``ZDCSyncable`` (and not an optional): then its parts
/// are merged. It is encoded like the bare value; change tracking is not part of the value and is never stored with it.
///
/// ```swift
/// struct Note: ZDCRecord, Codable {
///   @Syncable var title = ""
///   @Syncable var due: Date?
///
///   static var syncableFields: [ZDCField<Note>] { [ZDCField("title", \._title), ZDCField("due", \._due)] }
/// }
/// ```
@propertyWrapper
public struct Syncable<Value: Codable & Equatable & Sendable>: Sendable {
  private var value: Value
  /// The value when changes were last taken; nil if it was not modified since.
  private var before: Value?

  /// Wraps a value, with no tracked changes.
  ///
  /// ```swift
  /// struct Note: ZDCRecord, Codable, Equatable {
  ///   @Syncable var title = ""
  ///
  ///   static var syncableFields: [ZDCField<Note>] { [ZDCField("title", \._title)] }
  /// }
  /// ```
  public init(wrappedValue: Value) {
    value = wrappedValue
  }

  /// The value. The first modification stores the old value, so that the change can be undone and merged.
  public var wrappedValue: Value {
    get { value }
    _modify {
      if before == nil { before = value }
      yield &value
    }
  }
}

extension Syncable: Equatable {
  /// Compares the values only, not their tracked changes.
  public static func == (a: Self, b: Self) -> Bool { a.value == b.value }
}

extension Syncable: Hashable where Value: Hashable {
  /// Hashes the value only, not its tracked changes.
  public func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

extension Syncable: Codable {
  /// Decodes the bare value, with no tracked changes.
  public init(from decoder: any Decoder) throws {
    value = try decoder.singleValueContainer().decode(Value.self)
  }

  /// Encodes the bare value, without its tracked changes.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(value)
  }
}

/// The compiler-generated `Codable` conformance calls these for wrapped properties. An optional one may be missing or
/// null, like an optional property without a wrapper.
extension KeyedDecodingContainer {
  /// Decodes an optional property. A missing key gives nil, as it does without the wrapper.
  public func decode<T>(_ type: Syncable<T?>.Type, forKey key: Key) throws -> Syncable<T?> {
    Syncable(wrappedValue: try decodeIfPresent(T.self, forKey: key))
  }
}

extension KeyedEncodingContainer {
  /// Encodes an optional property. A nil value writes no key, as it does without the wrapper.
  public mutating func encode<T>(_ property: Syncable<T?>, forKey key: Key) throws {
    try encodeIfPresent(property.wrappedValue, forKey: key)
  }
}

extension Syncable: ZDCSyncable {
  /// Whether the value differs from its state when changes were last taken or cleared.
  public var hasChanges: Bool { before.map { !ThreeWay.isSame($0, value) } ?? false }

  /// The property as it was when changes were last taken or cleared.
  public var original: Self { Syncable(wrappedValue: before ?? value) }

  /// Makes the current value the baseline, including that of a nested syncable value.
  public mutating func clearChangeTracking() {
    before = nil
    NestedValue.clearChangeTracking(&value)
  }

  /// Makes `old` the baseline for later changes, including those of a nested syncable value.
  public mutating func trackChanges(since old: Self) {
    before = old.value
    NestedValue.trackChanges(&value, since: old.value)
  }

  /// Returns the changes from `old` to this value; nil if there are none.
  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    if NestedValue.isSyncable(Value.self) {
      return try NestedValue.changeset(value, since: old.value).map {
        ZDCChangeset(ChangeTree(.nested, children: [$0.asPart]))
      }
    }
    guard !ThreeWay.isSame(value, old.value) else { return nil }
    return ZDCChangeset(ChangeTree(.value, leaves: [try ValueCoding.encode([old.value])]))
  }

  /// Restores the old value in a changeset; see ``ZDCSyncable/revert(_:strictly:)``.
  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    if NestedValue.isSyncable(Value.self) {
      guard let tree = try changeset.tree(.nested) else { return }
      try tree.expectChildren(1)
      return try NestedValue.revert(&value, ZDCChangeset(tree.children[0]), strictly: strictly)
    }
    guard let tree = try changeset.tree(.value) else { return }
    try tree.expectLeaves(1)
    guard let old = try tree.leaf(0, [Value].self).first else { throw ZDCSyncableError(.malformedChangeset) }
    value = old
  }

  /// Merges with the cloud's version: a nested syncable value by its parts, any other value as a whole.
  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    let (base, cloud) = (base.value, cloudVersion.value)
    if NestedValue.isSyncable(Value.self) {
      NestedValue.merge(&value, base: base, cloudVersion: cloud, context: &context)
    } else {
      value = ThreeWay.resolve(base: base, mine: value, theirs: cloud, context: &context) ?? cloud
    }
  }
}
