/// An ordered set; members and order are tracked and merged.
///
/// Encoded like an array. Decoding fails if a member appears twice.
///
/// ```swift
/// var favourites: ZDCOrderedSet = ["a", "b", "c"]
/// favourites.move(from: 2, to: 0)
/// let changeset = try favourites.changeset()
/// try favourites.merge(cloudVersion: ["a", "b", "c", "d"], pendingChangesets: [changeset].compactMap(\.self))
/// // favourites == ["c", "a", "b", "d"]
/// ```
public struct ZDCOrderedSet<Element: Hashable & Codable & Sendable>: Sendable {
  /// The members in order.
  public private(set) var rawArray: [Element]
  private var members: Set<Element>
  private var before: [Element]?

  /// Creates an empty set.
  public init() {
    rawArray = []
    members = []
  }

  /// Creates a set from elements. If an element appears more than once, the first one counts.
  public init(_ elements: some Sequence<Element>) {
    var members: Set<Element> = []
    rawArray = elements.filter { members.insert($0).inserted }
    self.members = members
  }

  /// Returns whether the element is a member, in constant time.
  public func contains(_ member: Element) -> Bool { members.contains(member) }

  /// Appends a member.
  ///
  /// ```swift
  /// var guests: ZDCOrderedSet = ["Alice"]
  /// let isNew = guests.append("Bob")  // true; false if Bob was there already
  /// ```
  ///
  /// - Returns: Whether it is new; an existing member keeps its position.
  @discardableResult
  public mutating func append(_ member: Element) -> Bool {
    insert(member, at: rawArray.endIndex)
  }

  /// Inserts a member at an index of the set, or at its end.
  ///
  /// ```swift
  /// var guests: ZDCOrderedSet = ["Alice", "Bob"]
  /// guests.insert("Carol", at: 1)
  /// ```
  ///
  /// - Returns: Whether it is new; an existing member keeps its position.
  @discardableResult
  public mutating func insert(_ member: Element, at index: Int) -> Bool {
    guard members.insert(member).inserted else { return false }
    if before == nil { before = rawArray }
    rawArray.insert(member, at: Swift.min(index, rawArray.count))
    return true
  }

  /// - Returns: The member, if it was present.
  @discardableResult
  public mutating func remove(_ member: Element) -> Element? {
    guard let removed = members.remove(member), let index = rawArray.firstIndex(of: member) else { return nil }
    if before == nil { before = rawArray }
    rawArray.remove(at: index)
    return removed
  }

  /// Moves a member.
  ///
  /// ```swift
  /// var guests: ZDCOrderedSet = ["Alice", "Bob"]
  /// guests.move(from: 1, to: 0)
  /// ```
  ///
  /// - Parameters:
  ///   - source: An index of the set.
  ///   - destination: The member's index afterwards; beyond the end means the end.
  public mutating func move(from source: Int, to destination: Int) {
    if before == nil { before = rawArray }
    let member = rawArray.remove(at: source)
    rawArray.insert(member, at: Swift.min(destination, rawArray.count))
  }

  /// Removes all members.
  public mutating func removeAll() {
    if before == nil { before = rawArray }
    rawArray = []
    members = []
  }
}

extension ZDCOrderedSet: RandomAccessCollection {
  /// The position of the first element.
  public var startIndex: Int { rawArray.startIndex }
  /// The position after the last element.
  public var endIndex: Int { rawArray.endIndex }
  /// The member at a position. A position out of bounds is a programmer error.
  public subscript(position: Int) -> Element { rawArray[position] }
}

extension ZDCOrderedSet: Hashable {
  /// Compares the elements only, not the tracked changes.
  public static func == (a: Self, b: Self) -> Bool { a.rawArray == b.rawArray }
  /// Hashes the elements only, not the tracked changes.
  public func hash(into hasher: inout Hasher) { hasher.combine(rawArray) }
}

extension ZDCOrderedSet: ExpressibleByArrayLiteral {
  /// Creates a value with the elements of a literal.
  public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension ZDCOrderedSet: Codable {
  /// Decodes the elements, with no tracked changes.
  public init(from decoder: any Decoder) throws {
    let elements = try [Element](from: decoder)
    self.init(elements)
    guard count == elements.count else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "a member occurs twice"))
    }
  }

  /// Encodes the elements, without the tracked changes.
  public func encode(to encoder: any Encoder) throws {
    try rawArray.encode(to: encoder)
  }
}

extension ZDCOrderedSet: ZDCSyncable {
  /// Whether the elements differ from those when changes were last taken or cleared.
  public var hasChanges: Bool { before.map { $0 != rawArray } ?? false }

  /// The value as it was when changes were last taken or cleared.
  public var original: Self { before.map { Self($0) } ?? self }

  /// Makes the current elements the baseline for later changes.
  public mutating func clearChangeTracking() {
    before = nil
  }

  /// Makes `old` the baseline for later changes.
  public mutating func trackChanges(since old: Self) {
    before = old.rawArray
  }

  /// Returns the changes from `old` to this value; nil if there are none.
  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    ZDCChangeset(try OrderChange(from: old.rawArray, to: rawArray).tree())
  }

  /// Restores what a changeset changed; see ``ZDCSyncable/revert(_:strictly:)``.
  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.order) else { return }
    try OrderChange<Element>(tree).revert(&rawArray, strictly: strictly)
    members = Set(rawArray)
  }

  /// Merges with the cloud's version; see ``ZDCSyncable/merge(base:cloudVersion:context:)``.
  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    let sides = KeyOrder.Sides(base: base.rawArray, mine: rawArray, theirs: cloudVersion.rawArray)
    let merged = KeyOrder.mergeMembers(sides, prefersLocal: context.prefersLocal)
    rawArray = merged.order
    members = Set(rawArray)
    merged.report(sides, value: { $0 }, context: &context)
  }
}
