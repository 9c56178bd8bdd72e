/// A dictionary whose changes are tracked and merged key by key.
///
/// If its values are ``ZDCSyncable``, a change inside a value is merged with the changes of others inside the same
/// value. Encoded like a `Dictionary`.
public struct ZDCDictionary<Key: Hashable & Codable & Sendable, Value: Codable & Equatable & Sendable>: Sendable {
  /// The values as a plain dictionary.
  public private(set) var rawDictionary: [Key: Value]
  private var before: [Key: Value]?

  public init(_ values: [Key: Value] = [:]) {
    rawDictionary = values
  }

  public subscript(key: Key) -> Value? {
    get { rawDictionary[key] }
    _modify {
      if before == nil { before = rawDictionary }
      yield &rawDictionary[key]
    }
  }

  public subscript(key: Key, default value: @autoclosure () -> Value) -> Value {
    get { rawDictionary[key] ?? value() }
    _modify {
      if before == nil { before = rawDictionary }
      yield &rawDictionary[key, default: value()]
    }
  }

  public var keys: Dictionary<Key, Value>.Keys { rawDictionary.keys }
  public var values: Dictionary<Key, Value>.Values { rawDictionary.values }

  /// - Returns: The previous value.
  @discardableResult
  public mutating func removeValue(forKey key: Key) -> Value? {
    if before == nil { before = rawDictionary }
    return rawDictionary.removeValue(forKey: key)
  }

  public mutating func removeAll() {
    if before == nil { before = rawDictionary }
    rawDictionary = [:]
  }
}

extension ZDCDictionary: Collection {
  public var startIndex: Dictionary<Key, Value>.Index { rawDictionary.startIndex }
  public var endIndex: Dictionary<Key, Value>.Index { rawDictionary.endIndex }
  public func index(after index: Dictionary<Key, Value>.Index) -> Dictionary<Key, Value>.Index {
    rawDictionary.index(after: index)
  }
  public subscript(position: Dictionary<Key, Value>.Index) -> (key: Key, value: Value) { rawDictionary[position] }
}

extension ZDCDictionary: Equatable {
  public static func == (a: Self, b: Self) -> Bool { a.rawDictionary == b.rawDictionary }
}

extension ZDCDictionary: Hashable where Value: Hashable {
  public func hash(into hasher: inout Hasher) { hasher.combine(rawDictionary) }
}

extension ZDCDictionary: ExpressibleByDictionaryLiteral {
  /// Unlike `Dictionary`, accepts a key more than once; the last one counts.
  public init(dictionaryLiteral elements: (Key, Value)...) {
    self.init(Dictionary(elements, uniquingKeysWith: { $1 }))
  }
}

extension ZDCDictionary: Codable {
  public init(from decoder: any Decoder) throws {
    self.init(try [Key: Value](from: decoder))
  }

  public func encode(to encoder: any Encoder) throws {
    try rawDictionary.encode(to: encoder)
  }
}

extension ZDCDictionary: ZDCSyncable {
  public var hasChanges: Bool { before.map { $0 != rawDictionary } ?? false }

  public var original: Self { Self(before ?? rawDictionary) }

  public mutating func clearChangeTracking() {
    before = nil
    guard NestedValue.isSyncable(Value.self) else { return }
    for key in rawDictionary.keys {
      if var value = rawDictionary[key] {
        NestedValue.clearChangeTracking(&value)
        rawDictionary[key] = value
      }
    }
  }

  public mutating func trackChanges(since old: Self) {
    before = old.rawDictionary
  }

  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    ZDCChangeset(try KeyedChange(from: old.rawDictionary, to: rawDictionary).tree())
  }

  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.keyed) else { return }
    try KeyedChange<Key, Value>(tree).revert(&rawDictionary, strictly: strictly)
  }

  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    KeyedChange.merge(
      &rawDictionary, base: base.rawDictionary, cloudVersion: cloudVersion.rawDictionary, context: &context)
  }
}
