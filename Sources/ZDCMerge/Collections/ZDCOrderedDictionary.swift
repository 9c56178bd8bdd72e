/// An ordered dictionary; values, keys and order are tracked and merged independently.
///
/// Use this collection for lists of items that have an identity: a row that one device edits while another moves it is
/// edited and moved. If the values are ``ZDCSyncable``, changes inside the same value are merged, too. Encoded as an
/// array of alternating keys and values. Decoding fails if a key appears twice.
///
/// ```swift
/// var rows: ZDCOrderedDictionary = ["a": "milk", "b": "bread", "c": "tea"]
/// rows.move(from: 2, to: 0)
/// let changeset = try rows.changeset()
/// let cloud: ZDCOrderedDictionary = ["a": "milk", "b": "bread", "c": "green tea"]
/// try rows.merge(cloudVersion: cloud, pendingChangesets: [changeset].compactMap(\.self))
/// // rows.keys == ["c", "a", "b"], rows["c"] == "green tea"
/// ```
public struct ZDCOrderedDictionary<Key: Hashable & Codable & Sendable, Value: Codable & Equatable & Sendable>:
  Sendable
{
  struct Content: Sendable, Equatable {
    var order: [Key] = []
    var values: [Key: Value] = [:]
  }

  private var content = Content()
  private var before: Content?

  /// Creates an empty dictionary.
  public init() {}

  /// Creates a dictionary from pairs. A key that appears more than once has its first position and its last value.
  ///
  /// ```swift
  /// let rows = ZDCOrderedDictionary([("a", "milk"), ("b", "bread")])
  /// ```
  public init(_ pairs: some Sequence<(Key, Value)>) {
    for (key, value) in pairs { content.set(value, forKey: key) }
  }

  private init(content: Content) {
    self.content = content
  }

  private mutating func change<Result>(_ body: (inout Content) -> Result) -> Result {
    if before == nil { before = content }
    return body(&content)
  }

  /// The keys in order.
  public var keys: [Key] { content.order }
  /// The values in the order of their keys.
  public var values: [Value] { content.order.compactMap { content.values[$0] } }
  /// The values by key, without the order.
  public var rawDictionary: [Key: Value] { content.values }

  /// Accesses the value of a key. Setting a new key appends it; setting nil removes the key.
  public subscript(key: Key) -> Value? {
    get { content.values[key] }
    set { change { $0.set(newValue, forKey: key) } }
  }

  /// Stores a value. A new key is inserted at the index, or at the end if the index is beyond it. An existing key keeps
  /// its position.
  ///
  /// ```swift
  /// var rows: ZDCOrderedDictionary = ["a": "milk", "b": "bread"]
  /// rows.insert("tea", forKey: "c", at: 0)  // rows.keys == ["c", "a", "b"]
  /// ```
  public mutating func insert(_ value: Value, forKey key: Key, at index: Int) {
    change {
      if $0.values.updateValue(value, forKey: key) == nil { $0.order.insert(key, at: Swift.min(index, $0.order.count)) }
    }
  }

  /// Moves a key.
  ///
  /// ```swift
  /// var rows: ZDCOrderedDictionary = ["a": "milk", "b": "bread", "c": "tea"]
  /// rows.move(from: 2, to: 0)  // rows.keys == ["c", "a", "b"]
  /// ```
  ///
  /// - Parameters:
  ///   - source: An index of the dictionary.
  ///   - destination: The key's index afterwards; beyond the end means the end.
  public mutating func move(from source: Int, to destination: Int) {
    change {
      let key = $0.order.remove(at: source)
      $0.order.insert(key, at: Swift.min(destination, $0.order.count))
    }
  }

  /// - Returns: The previous value.
  @discardableResult
  public mutating func removeValue(forKey key: Key) -> Value? {
    change {
      let value = $0.values[key]
      $0.set(nil, forKey: key)
      return value
    }
  }

  /// Removes all keys and values.
  public mutating func removeAll() {
    change { $0 = Content() }
  }

  /// Returns the position of a key; nil if it is absent. Takes time in proportion to the number of keys.
  ///
  /// ```swift
  /// var rows: ZDCOrderedDictionary = ["a": "milk", "b": "bread"]
  /// if let index = rows.firstIndex(ofKey: "b") { rows.move(from: index, to: 0) }
  /// ```
  public func firstIndex(ofKey key: Key) -> Int? { content.order.firstIndex(of: key) }
}

extension ZDCOrderedDictionary.Content {
  fileprivate mutating func set(_ value: Value?, forKey key: Key) {
    if let value {
      if values.updateValue(value, forKey: key) == nil { order.append(key) }
    } else if values.removeValue(forKey: key) != nil, let index = order.firstIndex(of: key) {
      order.remove(at: index)
    }
  }

  /// Repairs a mismatch between keys and order that a damaged changeset may have caused.
  fileprivate mutating func reconcile(strictly: Bool) throws(ZDCSyncableError) {
    let present = order.filter { values[$0] != nil }
    guard present.count != order.count || present.count != values.count else { return }
    if strictly { throw ZDCSyncableError(.mismatchedChangeset) }
    let known = Set(present)
    order = present + (try ValueCoding.sorted(values.keys.filter { !known.contains($0) }))
  }
}

extension ZDCOrderedDictionary: RandomAccessCollection {
  /// The position of the first element.
  public var startIndex: Int { 0 }
  /// The position after the last element.
  public var endIndex: Int { content.order.count }
  /// The key and value at a position. A position out of bounds is a programmer error.
  public subscript(position: Int) -> (key: Key, value: Value) {
    let key = content.order[position]
    guard let value = content.values[key] else { preconditionFailure("a key without a value") }
    return (key, value)
  }
}

extension ZDCOrderedDictionary: Equatable {
  /// Compares the elements only, not the tracked changes.
  public static func == (a: Self, b: Self) -> Bool { a.content == b.content }
}

extension ZDCOrderedDictionary: Hashable where Value: Hashable {
  /// Hashes the elements only, not the tracked changes.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(content.order)
    hasher.combine(content.values)
  }
}

extension ZDCOrderedDictionary: ExpressibleByDictionaryLiteral {
  /// Creates a value with the keys and values of a literal.
  public init(dictionaryLiteral elements: (Key, Value)...) { self.init(elements) }
}

extension ZDCOrderedDictionary: Codable {
  /// Decodes the elements, with no tracked changes.
  public init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    while !container.isAtEnd {
      let key = try container.decode(Key.self)
      guard content.values.updateValue(try container.decode(Value.self), forKey: key) == nil else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "a key occurs twice")
      }
      content.order.append(key)
    }
  }

  /// Encodes the elements, without the tracked changes.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.unkeyedContainer()
    for (key, value) in self {
      try container.encode(key)
      try container.encode(value)
    }
  }
}

extension ZDCOrderedDictionary: ZDCSyncable {
  /// Whether the elements differ from those when changes were last taken or cleared.
  public var hasChanges: Bool { before.map { $0 != content } ?? false }

  /// The value as it was when changes were last taken or cleared.
  public var original: Self { Self(content: before ?? content) }

  /// Makes the current elements the baseline for later changes.
  public mutating func clearChangeTracking() {
    before = nil
    guard NestedValue.isSyncable(Value.self) else { return }
    for key in content.order {
      if var value = content.values[key] {
        NestedValue.clearChangeTracking(&value)
        content.values[key] = value
      }
    }
  }

  /// Makes `old` the baseline for later changes.
  public mutating func trackChanges(since old: Self) {
    before = old.content
  }

  /// Returns the changes from `old` to this value; nil if there are none.
  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    let values = try KeyedChange(from: old.content.values, to: content.values).tree()
    let order = try OrderChange(from: old.content.order, to: content.order).tree()
    guard values != nil || order != nil else { return nil }
    let nothing = ChangeTree(.nothing)
    return ZDCChangeset(ChangeTree(.orderedKeyed, children: [values ?? nothing, order ?? nothing]))
  }

  /// Restores what a changeset changed; see ``ZDCSyncable/revert(_:strictly:)``.
  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.orderedKeyed) else { return }
    try tree.expectChildren(2)
    if let values = try ZDCChangeset(tree.children[0]).tree(.keyed) {
      try KeyedChange<Key, Value>(values).revert(&content.values, strictly: strictly)
    }
    if let order = try ZDCChangeset(tree.children[1]).tree(.order) {
      try OrderChange<Key>(order).revert(&content.order, strictly: strictly)
    }
    try content.reconcile(strictly: strictly)
  }

  /// Merges with the cloud's version; see ``ZDCSyncable/merge(base:cloudVersion:context:)``.
  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    let sides = KeyOrder.Sides(base: base.keys, mine: keys, theirs: cloudVersion.keys)
    KeyedChange.merge(
      &content.values, base: base.content.values, cloudVersion: cloudVersion.content.values, context: &context)
    let values = content.values
    let merged = KeyOrder.merge(sides, prefersLocal: context.prefersLocal) { values[$0] != nil }
    content.order = merged.order
    merged.report(sides, value: { $0 }, context: &context)
  }
}
