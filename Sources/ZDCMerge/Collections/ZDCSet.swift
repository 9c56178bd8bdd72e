/// A set whose changes are tracked and merged: additions and removals of either side apply.
///
/// Encoded like a `Set`.
///
/// ```swift
/// var labels: ZDCSet = ["red", "blue"]
/// labels.remove("blue")
/// let changeset = try labels.changeset()
/// try labels.merge(cloudVersion: ["red", "blue", "green"], pendingChangesets: [changeset].compactMap(\.self))
/// // labels == ["red", "green"]: the removal here and the addition there
/// ```
public struct ZDCSet<Element: Hashable & Codable & Sendable>: Sendable {
  /// The members as a plain set.
  public private(set) var rawSet: Set<Element>
  private var before: Set<Element>?

  /// Creates an empty set.
  public init() {
    rawSet = []
  }

  /// Creates a set with the elements of a sequence.
  public init(_ members: some Sequence<Element>) {
    rawSet = Set(members)
  }

  /// Returns whether the element is a member.
  public func contains(_ member: Element) -> Bool { rawSet.contains(member) }

  /// ```swift
  /// var tags: ZDCSet = ["red"]
  /// let isNew = tags.insert("blue")  // true
  /// ```
  ///
  /// - Returns: Whether the member is new.
  @discardableResult
  public mutating func insert(_ member: Element) -> Bool {
    if before == nil { before = rawSet }
    return rawSet.insert(member).inserted
  }

  /// - Returns: The member, if it was present.
  @discardableResult
  public mutating func remove(_ member: Element) -> Element? {
    if before == nil { before = rawSet }
    return rawSet.remove(member)
  }

  /// Removes all members.
  public mutating func removeAll() {
    if before == nil { before = rawSet }
    rawSet = []
  }
}

extension ZDCSet: Collection {
  /// The position of the first element.
  public var startIndex: Set<Element>.Index { rawSet.startIndex }
  /// The position after the last element.
  public var endIndex: Set<Element>.Index { rawSet.endIndex }
  /// Returns the position after another one.
  public func index(after index: Set<Element>.Index) -> Set<Element>.Index { rawSet.index(after: index) }
  /// The member at a position.
  public subscript(position: Set<Element>.Index) -> Element { rawSet[position] }
}

extension ZDCSet: Hashable {
  /// Compares the elements only, not the tracked changes.
  public static func == (a: Self, b: Self) -> Bool { a.rawSet == b.rawSet }
  /// Hashes the elements only, not the tracked changes.
  public func hash(into hasher: inout Hasher) { hasher.combine(rawSet) }
}

extension ZDCSet: ExpressibleByArrayLiteral {
  /// Creates a value with the elements of a literal.
  public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension ZDCSet: Codable {
  /// Decodes the elements, with no tracked changes.
  public init(from decoder: any Decoder) throws {
    self.init(try Set<Element>(from: decoder))
  }

  /// Encodes the elements, without the tracked changes.
  public func encode(to encoder: any Encoder) throws {
    try rawSet.encode(to: encoder)
  }
}

extension ZDCSet: ZDCSyncable {
  /// Whether the elements differ from those when changes were last taken or cleared.
  public var hasChanges: Bool { before.map { $0 != rawSet } ?? false }

  /// The value as it was when changes were last taken or cleared.
  public var original: Self { Self(before ?? rawSet) }

  /// Makes the current elements the baseline for later changes.
  public mutating func clearChangeTracking() {
    before = nil
  }

  /// Makes `old` the baseline for later changes.
  public mutating func trackChanges(since old: Self) {
    before = old.rawSet
  }

  /// Returns the changes from `old` to this value; nil if there are none.
  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    ZDCChangeset(try MemberChange(from: old.rawSet, to: rawSet).tree())
  }

  /// Restores what a changeset changed; see ``ZDCSyncable/revert(_:strictly:)``.
  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.members) else { return }
    try MemberChange<Element>(tree).revert(&rawSet, strictly: strictly)
  }

  /// Merges with the cloud's version; see ``ZDCSyncable/merge(base:cloudVersion:context:)``.
  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    MemberChange.merge(&rawSet, base: base.rawSet, cloudVersion: cloudVersion.rawSet)
  }
}
