public import Foundation

/// What a merge did, for the merge journal and for apps that want to tell their user.
public struct ZDCMergeReport: Sendable, Hashable, Codable {
  /// What both sides had changed, sorted by path. The cloud's version won.
  public var conflicts: [ZDCMergeConflict]
  /// Undone on the merged value, it gives back the local value from before the merge.
  public var undo: ZDCChangeset
  /// What the merged value changes in the cloud's version; nil if nothing, so that nothing needs to be uploaded. It may
  /// take the place of the pending changesets: they began at a version that the cloud has left behind.
  public var remaining: ZDCChangeset?
  /// Undone on the merged value, it puts the local changes that lost in the place of the cloud's, and leaves everything
  /// else; nil if nothing was lost.
  public var lost: ZDCChangeset?

  public init(
    conflicts: [ZDCMergeConflict], undo: ZDCChangeset, remaining: ZDCChangeset?, lost: ZDCChangeset? = nil
  ) {
    self.conflicts = conflicts
    self.undo = undo
    self.remaining = remaining
    self.lost = lost
  }
}

/// A property, key or order that both sides changed differently, so that one change was lost.
///
/// The values are JSON. nil stands for "not there": added later, or deleted.
public struct ZDCMergeConflict: Sendable, Hashable, Codable {
  public enum Kind: String, Sendable, Hashable, Codable {
    case value
    /// Both sides moved the same elements; the values are these elements, in the order that each side gave them.
    case order
  }

  public var kind: Kind
  /// From the outermost value inwards: names of properties, and keys. A key that is no string is written as JSON.
  public var path: [String]
  /// What both sides began with.
  public var base: Data?
  /// The local change, which lost.
  public var mine: Data?
  /// The cloud's.
  public var theirs: Data?
  /// What the merged value has now.
  public var result: Data?

  public init(kind: Kind, path: [String], base: Data?, mine: Data?, theirs: Data?, result: Data?) {
    self.kind = kind
    self.path = path
    self.base = base
    self.mine = mine
    self.theirs = theirs
    self.result = result
  }

  /// One of the conflict's values as the type that it has in the app: `try conflict.value(\.mine, as: String.self)`.
  ///
  /// - Returns: nil if there was no value on that side.
  /// - Throws: `incorrectType` if it is of another type, `malformedChangeset` if it is damaged.
  public func value<T: Decodable>(
    _ side: KeyPath<ZDCMergeConflict, Data?>, as type: T.Type
  ) throws(ZDCSyncableError) -> T? {
    guard let json = self[keyPath: side] else { return nil }
    return try ValueCoding.decode([T].self, Data("[".utf8) + json + Data("]".utf8)).first
  }
}

/// Where a merge is, and what it found so far. Types that implement ``ZDCSyncable`` hand it on.
public struct ZDCMergeContext: Sendable {
  /// Where both sides changed something: whether the local side wins. Merges are made with false; a second time with
  /// true, they tell what was lost (``ZDCMergeReport/lost``). A type that does not ask has nothing to give back.
  public let prefersLocal: Bool
  private var path: [String] = []
  private var conflicts: [ZDCMergeConflict] = []
  /// The first value that could not be told: without it the merge would lose something silently.
  private(set) var failure: ZDCSyncableError?

  init(prefersLocal: Bool = false) {
    self.prefersLocal = prefersLocal
  }

  /// Merges a part of the value; its conflicts stand below `component`.
  public mutating func descend(_ component: String, _ body: (inout ZDCMergeContext) -> Void) {
    path.append(component)
    body(&self)
    path.removeLast()
  }

  /// The same for a value by key.
  mutating func descend(key: some Encodable, _ body: (inout ZDCMergeContext) -> Void) {
    descend(noting { () throws(ZDCSyncableError) in try ValueCoding.text(key) } ?? "?", body)
  }

  /// Reports that `mine` lost. nil stands for "not there".
  ///
  /// A value that cannot be encoded makes the merge throw `notEncodable` at its end.
  public mutating func report<T: Encodable>(
    _ kind: ZDCMergeConflict.Kind = .value, base: T?, mine: T?, theirs: T?, result: T?
  ) {
    guard !prefersLocal else { return }
    conflicts.append(
      ZDCMergeConflict(
        kind: kind, path: path, base: json(base), mine: json(mine), theirs: json(theirs), result: json(result)))
  }

  private mutating func json<T: Encodable>(_ value: T?) -> Data? {
    guard let value else { return nil }
    return noting { () throws(ZDCSyncableError) in Data(try ValueCoding.encode([value]).dropFirst().dropLast()) }
  }

  private mutating func noting<Result>(_ body: () throws(ZDCSyncableError) -> Result) -> Result? {
    do throws(ZDCSyncableError) { return try body() } catch {
      failure = failure ?? error
      return nil
    }
  }

  var hasConflicts: Bool { !conflicts.isEmpty }

  var sortedConflicts: [ZDCMergeConflict] {
    conflicts.sorted {
      ($0.path == $1.path) ? $0.kind.rawValue < $1.kind.rawValue : $0.path.lexicographicallyPrecedes($1.path)
    }
  }
}
