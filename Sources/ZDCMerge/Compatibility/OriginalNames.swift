// Names that apps use from the original ZDCSyncable. As there, an index beyond the end means the end.

extension ZDCArray {
  /// Moves an element; `toIndex` is its index afterwards.
  public mutating func move(fromIndex source: Int, toIndex destination: Int) {
    move(from: source, to: destination)
  }

  /// Removes the first equal element, if there is one.
  public mutating func remove(_ element: Element) {
    if let index = firstIndex(of: element) { remove(at: index) }
  }
}

extension ZDCOrderedSet {
  /// The members in order; an alias for ``rawArray``.
  public var rawOrder: [Element] { rawArray }

  /// Appends a member unless it is already present.
  ///
  /// - Returns: Whether it was added.
  @discardableResult
  public mutating func insert(_ member: Element) -> Bool { append(member) }

  /// Removes the member at an index.
  @discardableResult
  public mutating func remove(at index: Int) -> Element {
    let member = rawArray[index]
    remove(member)
    return member
  }

  /// Moves a member; `toIndex` is its index afterwards.
  public mutating func move(fromIndex source: Int, toIndex destination: Int) {
    move(from: source, to: destination)
  }

  /// Returns the member's index; nil if it is not a member.
  public func index(of member: Element) -> Int? { contains(member) ? firstIndex(of: member) : nil }
}

extension ZDCOrderedDictionary {
  /// The keys in order; an alias for ``keys``.
  public var rawOrder: [Key] { keys }

  /// An alias for ``values``.
  public var orderedValues: [Value] { values }

  /// Stores a value; a new key is inserted at that index.
  ///
  /// - Returns: The key's index afterwards.
  @discardableResult
  public mutating func insert(_ value: Value, forKey key: Key, atIndex index: Int) -> Int {
    insert(value, forKey: key, at: index)
    return firstIndex(ofKey: key) ?? endIndex
  }

  /// Moves a key; `toIndex` is its index afterwards.
  public mutating func move(fromIndex source: Int, toIndex destination: Int) {
    move(from: source, to: destination)
  }

  /// Returns the key at an index; nil if there is none.
  public func keyAtIndex(_ index: Int) -> Key? { keys.indices.contains(index) ? keys[index] : nil }

  /// Returns the value at an index; nil if there is none.
  public func valueAtIndex(_ index: Int) -> Value? { keyAtIndex(index).flatMap { self[$0] } }

  /// Returns the key's index; nil if there is no such key.
  public func index(ofKey key: Key) -> Int? { firstIndex(ofKey: key) }

  /// Removes the key at an index.
  ///
  /// - Returns: Its value.
  @discardableResult
  public mutating func remove(at index: Int) -> Value? { removeValue(forKey: keys[index]) }
}

extension ZDCChangeset: ExpressibleByDictionaryLiteral {
  /// The changeset without changes: `try task.changeset() ?? [:]`. Changesets are opaque, so no other literal compiles.
  public init(dictionaryLiteral elements: (String, Never)...) { self = .empty }
}
