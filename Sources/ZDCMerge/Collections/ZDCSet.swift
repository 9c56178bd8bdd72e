/// A set whose changes are tracked and merged: additions and removals of either side apply.
///
/// Encoded like a `Set`.
public struct ZDCSet<Element: Hashable & Codable & Sendable>: Sendable {
  /// The members as a plain set.
  public private(set) var rawSet: Set<Element>
  private var before: Set<Element>?

  public init() {
    rawSet = []
  }

  public init(_ members: some Sequence<Element>) {
    rawSet = Set(members)
  }

  public func contains(_ member: Element) -> Bool { rawSet.contains(member) }

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

  public mutating func removeAll() {
    if before == nil { before = rawSet }
    rawSet = []
  }
}

extension ZDCSet: Collection {
  public var startIndex: Set<Element>.Index { rawSet.startIndex }
  public var endIndex: Set<Element>.Index { rawSet.endIndex }
  public func index(after index: Set<Element>.Index) -> Set<Element>.Index { rawSet.index(after: index) }
  public subscript(position: Set<Element>.Index) -> Element { rawSet[position] }
}

extension ZDCSet: Hashable {
  public static func == (a: Self, b: Self) -> Bool { a.rawSet == b.rawSet }
  public func hash(into hasher: inout Hasher) { hasher.combine(rawSet) }
}

extension ZDCSet: ExpressibleByArrayLiteral {
  public init(arrayLiteral elements: Element...) { self.init(elements) }
}

extension ZDCSet: Codable {
  public init(from decoder: any Decoder) throws {
    self.init(try Set<Element>(from: decoder))
  }

  public func encode(to encoder: any Encoder) throws {
    try rawSet.encode(to: encoder)
  }
}

extension ZDCSet: ZDCSyncable {
  public var hasChanges: Bool { before.map { $0 != rawSet } ?? false }

  public var original: Self { Self(before ?? rawSet) }

  public mutating func clearChangeTracking() {
    before = nil
  }

  public mutating func trackChanges(since old: Self) {
    before = old.rawSet
  }

  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    ZDCChangeset(try MemberChange(from: old.rawSet, to: rawSet).tree())
  }

  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.members) else { return }
    try MemberChange<Element>(tree).revert(&rawSet, strictly: strictly)
  }

  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    MemberChange.merge(&rawSet, base: base.rawSet, cloudVersion: cloudVersion.rawSet)
  }
}
