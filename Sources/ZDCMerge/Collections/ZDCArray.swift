/// An array whose changes are tracked and merged: additions and removals of either side apply, and so do the moves that
/// only one side made.
///
/// Equal elements are distinguished only by their number: the second of two equal ones is "the second". Replacing an
/// element with a changed one counts as a removal and an addition, so if two devices change the same element, both
/// results stay. For elements that have an identity use a ``ZDCOrderedDictionary``. Encoded like an `Array`.
///
/// ```swift
/// var list: ZDCArray = ["milk", "bread"]
/// list.append("eggs")
/// let changeset = try list.changeset()
/// try list.merge(cloudVersion: ["tea", "milk", "bread"], pendingChangesets: [changeset].compactMap(\.self))
/// // list == ["tea", "milk", "bread", "eggs"]
/// ```
public struct ZDCArray<Element: Hashable & Codable & Sendable>: Sendable {
  /// The elements as a plain array.
  public private(set) var rawArray: [Element]
  private var before: [Element]?

  /// Creates an array with the elements of a sequence.
  ///
  /// ```swift
  /// var tags = ZDCArray(["red", "green"])
  /// tags.append("blue")
  /// ```
  public init(_ elements: some Sequence<Element>) {
    rawArray = Array(elements)
  }

  private mutating func change<Result>(_ body: (inout [Element]) -> Result) -> Result {
    if before == nil { before = rawArray }
    return body(&rawArray)
  }
}

extension ZDCArray: RandomAccessCollection, MutableCollection, RangeReplaceableCollection {
  /// Creates an empty array.
  public init() { rawArray = [] }

  /// The position of the first element.
  public var startIndex: Int { rawArray.startIndex }
  /// The position after the last element.
  public var endIndex: Int { rawArray.endIndex }

  /// The element at a position. A position out of bounds is a programmer error.
  public subscript(position: Int) -> Element {
    get { rawArray[position] }
    set { change { $0[position] = newValue } }
  }

  /// Replaces the elements in a range; every other change of the array is a form of this.
  public mutating func replaceSubrange(_ range: Range<Int>, with elements: some Collection<Element>) {
    change { $0.replaceSubrange(range, with: elements) }
  }

  /// The default implementation replaces this array with a new empty one, which has no tracked changes.
  public mutating func removeAll(keepingCapacity keepCapacity: Bool = false) {
    change { $0.removeAll(keepingCapacity: keepCapacity) }
  }

  /// Moves an element.
  ///
  /// ```swift
  /// var steps: ZDCArray = ["mix", "bake", "eat"]
  /// steps.move(from: 2, to: 0)  // ["eat", "mix", "bake"]
  /// ```
  ///
  /// - Parameters:
  ///   - source: An index of the array.
  ///   - destination: The element's index afterwards; beyond the end means the end.
  public mutating func move(from source: Int, to destination: Int) {
    change { $0.insert($0.remove(at: source), at: Swift.min(destination, $0.count)) }
  }
}

extension ZDCArray: Hashable {
  /// Compares the elements only, not the tracked changes.
  public static func == (a: Self, b: Self) -> Bool { a.rawArray == b.rawArray }
  /// Hashes the elements only, not the tracked changes.
  public func hash(into hasher: inout Hasher) { hasher.combine(rawArray) }
}

extension ZDCArray: ExpressibleByArrayLiteral {
  /// Creates a value with the elements of a literal.
  public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension ZDCArray: Codable {
  /// Decodes the elements, with no tracked changes.
  public init(from decoder: any Decoder) throws {
    self.init(try [Element](from: decoder))
  }

  /// Encodes the elements, without the tracked changes.
  public func encode(to encoder: any Encoder) throws {
    try rawArray.encode(to: encoder)
  }
}

/// An element, and the number of equal elements before it.
private struct Occurrence<Element: Hashable & Codable & Sendable>: Hashable, Codable, Sendable {
  var element: Element
  var number: Int

  private enum CodingKeys: String, CodingKey {
    case element = "e"
    case number = "n"
  }

  static func all(_ elements: [Element]) -> [Occurrence] {
    var counts: [Element: Int] = [:]
    return elements.map { element in
      let number = counts[element, default: 0]
      counts[element] = number + 1
      return Occurrence(element: element, number: number)
    }
  }
}

extension ZDCArray: ZDCSyncable {
  /// Whether the elements differ from those when changes were last taken or cleared.
  public var hasChanges: Bool { before.map { $0 != rawArray } ?? false }

  /// The value as it was when changes were last taken or cleared.
  public var original: Self { Self(before ?? rawArray) }

  /// Makes the current elements the baseline for later changes.
  public mutating func clearChangeTracking() {
    before = nil
  }

  /// Makes `old` the baseline for later changes.
  public mutating func trackChanges(since old: Self) {
    before = old.rawArray
  }

  /// Returns the changes from `old` to this value; nil if there are none.
  ///
  /// ```swift
  /// var edited = ZDCArray(["red"])
  /// edited.append("green")
  /// let changeset = try edited.changeset(since: ZDCArray(["red"]))
  /// ```
  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    guard rawArray != old.rawArray else { return nil }
    return ZDCChangeset(try OrderChange(from: Occurrence.all(old.rawArray), to: Occurrence.all(rawArray)).tree())
  }

  /// Restores what a changeset changed; see ``ZDCSyncable/revert(_:strictly:)``.
  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.order) else { return }
    var order = Occurrence.all(rawArray)
    try OrderChange<Occurrence<Element>>(tree).revert(&order, strictly: strictly)
    rawArray = order.map(\.element)
  }

  /// Merges with the cloud's version; see ``ZDCSyncable/merge(base:cloudVersion:context:)``.
  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    let sides = KeyOrder.Sides(
      base: Occurrence.all(base.rawArray), mine: Occurrence.all(rawArray),
      theirs: Occurrence.all(cloudVersion.rawArray))
    let merged = KeyOrder.mergeMembers(sides, prefersLocal: context.prefersLocal)
    rawArray = merged.order.map(\.element)
    merged.report(sides, value: { $0.element }, context: &context)
  }
}
