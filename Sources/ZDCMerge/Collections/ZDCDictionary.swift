/// A dictionary whose changes are tracked and merged key by key.
///
/// If its values are ``ZDCSyncable``, a change inside a value is merged with the changes of others inside the same
/// value. Encoded like a `Dictionary`.
///
/// ```swift
/// var settings: ZDCDictionary = ["theme": "light", "font": "small"]
/// settings["theme"] = "dark"
/// let changeset = try settings.changeset()
/// let cloud: ZDCDictionary = ["theme": "light", "font": "large"]
/// try settings.merge(cloudVersion: cloud, pendingChangesets: [changeset].compactMap(\.self))
/// // settings == ["theme": "dark", "font": "large"]
/// ```
public struct ZDCDictionary<Key: Hashable & Codable & Sendable, Value: Codable & Equatable & Sendable>: Sendable {
  /// The values as a plain dictionary.
  public private(set) var rawDictionary: [Key: Value]
  private var before: [Key: Value]?

  /// Creates a dictionary with no tracked changes.
  public init(_ values: [Key: Value] = [:]) {
    rawDictionary = values
  }

  /// The value of a key. Setting nil removes the key.
  ///
  /// ```swift
  /// var ratings: ZDCDictionary = ["milk": 3]
  /// ratings["bread"] = 5
  /// ratings["milk"] = nil
  /// ```
  public subscript(key: Key) -> Value? {
    get { rawDictionary[key] }
    _modify {
      if before == nil { before = rawDictionary }
      yield &rawDictionary[key]
    }
  }

  /// The value of a key, or a default if the key is absent. A change to the default stores it.
  ///
  /// ```swift
  /// var counts = ZDCDictionary<String, Int>()
  /// counts["milk", default: 0] += 1
  /// ```
  public subscript(key: Key, default value: @autoclosure () -> Value) -> Value {
    get { rawDictionary[key] ?? value() }
    _modify {
      if before == nil { before = rawDictionary }
      yield &rawDictionary[key, default: value()]
    }
  }

  /// The keys, in no particular order.
  public var keys: Dictionary<Key, Value>.Keys { rawDictionary.keys }
  /// The values, in no particular order.
  public var values: Dictionary<Key, Value>.Values { rawDictionary.values }

  /// ```swift
  /// var ratings: ZDCDictionary = ["milk": 3]
  /// let old = ratings.removeValue(forKey: "milk")  // 3
  /// ```
  ///
  /// - Returns: The previous value.
  @discardableResult
  public mutating func removeValue(forKey key: Key) -> Value? {
    if before == nil { before = rawDictionary }
    return rawDictionary.removeValue(forKey: key)
  }

  /// Removes all keys and values.
  public mutating func removeAll() {
    if before == nil { before = rawDictionary }
    rawDictionary = [:]
  }
}

extension ZDCDictionary: Collection {
  /// The position of the first element.
  public var startIndex: Dictionary<Key, Value>.Index { rawDictionary.startIndex }
  /// The position after the last element.
  public var endIndex: Dictionary<Key, Value>.Index { rawDictionary.endIndex }
  /// Returns the position after another one.
  public func index(after index: Dictionary<Key, Value>.Index) -> Dictionary<Key, Value>.Index {
    rawDictionary.index(after: index)
  }
  /// The key and value at a position.
  public subscript(position: Dictionary<Key, Value>.Index) -> (key: Key, value: Value) { rawDictionary[position] }
}

extension ZDCDictionary: Equatable {
  /// Compares the elements only, not the tracked changes.
  public static func == (a: Self, b: Self) -> Bool { a.rawDictionary == b.rawDictionary }
}

extension ZDCDictionary: Hashable where Value: Hashable {
  /// Hashes the elements only, not the tracked changes.
  public func hash(into hasher: inout Hasher) { hasher.combine(rawDictionary) }
}

extension ZDCDictionary: ExpressibleByDictionaryLiteral {
  /// Unlike `Dictionary`, accepts a key more than once; the last one counts.
  public init(dictionaryLiteral elements: (Key, Value)...) {
    self.init(Dictionary(elements, uniquingKeysWith: { $1 }))
  }
}

extension ZDCDictionary: Codable {
  /// Decodes the elements, with no tracked changes.
  public init(from decoder: any Decoder) throws {
    self.init(try [Key: Value](from: decoder))
  }

  /// Encodes the elements, without the tracked changes.
  public func encode(to encoder: any Encoder) throws {
    try rawDictionary.encode(to: encoder)
  }
}

extension ZDCDictionary: ZDCSyncable {
  /// Whether the elements differ from those when changes were last taken or cleared.
  public var hasChanges: Bool { before.map { $0 != rawDictionary } ?? false }

  /// The value as it was when changes were last taken or cleared.
  public var original: Self { Self(before ?? rawDictionary) }

  /// Makes the current elements the baseline for later changes.
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

  /// Makes `old` the baseline for later changes.
  public mutating func trackChanges(since old: Self) {
    before = old.rawDictionary
  }

  /// Returns the changes from `old` to this value; nil if there are none.
  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    ZDCChangeset(try KeyedChange(from: old.rawDictionary, to: rawDictionary).tree())
  }

  /// Restores what a changeset changed; see ``ZDCSyncable/revert(_:strictly:)``.
  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.keyed) else { return }
    try KeyedChange<Key, Value>(tree).revert(&rawDictionary, strictly: strictly)
  }

  /// Merges with the cloud's version; see ``ZDCSyncable/merge(base:cloudVersion:context:)``.
  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    KeyedChange.merge(
      &rawDictionary, base: base.rawDictionary, cloudVersion: cloudVersion.rawDictionary, context: &context)
  }
}
