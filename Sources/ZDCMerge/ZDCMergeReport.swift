public import Foundation

/// The result of a merge, for the merge journal and for apps that want to notify their user.
///
/// ```swift
/// let report = try task.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
/// if report.remaining == nil { print("the cloud has everything: nothing to upload") }
/// ```
public struct ZDCMergeReport: Sendable, Hashable, Codable {
  /// The changes that both sides made differently, sorted by path. The cloud's version won.
  public var conflicts: [ZDCMergeConflict]
  /// Undoing it on the merged value restores the local value from before the merge.
  public var undo: ZDCChangeset
  /// The changes from the cloud's version to the merged value; nil if there are none, so that nothing needs to be
  /// uploaded. It can replace the pending changesets, which started from a version that is no longer the cloud's.
  public var remaining: ZDCChangeset?
  /// Undoing it on the merged value replaces the cloud's changes that won with the local ones that lost, and leaves
  /// everything else; nil if nothing was lost.
  public var lost: ZDCChangeset?

  /// Creates a report, for previews and tests.
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
/// The values are JSON. nil means "absent": added later, or deleted.
public struct ZDCMergeConflict: Sendable, Hashable, Codable {
  /// The changes of both sides.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// Both sides changed the value of a property or key.
    case value
    /// Both sides moved the same elements; the values are these elements, in each side's order.
    case order
  }

  /// The changes of both sides.
  public var kind: Kind
  /// The path from the outermost value inwards: property names and keys. A key that is not a string is written as JSON.
  public var path: [String]
  /// The common ancestor.
  public var base: Data?
  /// The local change, which lost.
  public var mine: Data?
  /// The cloud's change.
  public var theirs: Data?
  /// The merged value.
  public var result: Data?

  /// Creates a conflict, for previews and tests. Each value is JSON, or nil if it is absent on that side.
  public init(kind: Kind, path: [String], base: Data?, mine: Data?, theirs: Data?, result: Data?) {
    self.kind = kind
    self.path = path
    self.base = base
    self.mine = mine
    self.theirs = theirs
    self.result = result
  }

  /// Returns one of the conflict's values as its type in the app: `try conflict.value(\.mine, as: String.self)`.
  ///
  /// ```swift
  /// let report = try task.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
  /// for conflict in report.conflicts where conflict.path == ["title"] {
  ///   show([try conflict.value(\.mine, as: String.self) ?? "", try conflict.value(\.theirs, as: String.self) ?? ""])
  /// }
  /// ```
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

/// The position of a merge, and the conflicts found so far. Types that implement ``ZDCSyncable`` pass it on.
///
/// A value with a merge rule of its own, which apps use as a property of a ``ZDCRecord``:
///
/// ```swift
/// struct HighScore: ZDCSyncable, Codable, Equatable {
///   @Syncable var points = 0
///
///   mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
///     points = max(points, cloudVersion.points)  // the rule; the rest is that of the wrapper
///   }
///
///   var hasChanges: Bool { _points.hasChanges }
///   var original: Self { Self(points: _points.original.wrappedValue) }
///   mutating func clearChangeTracking() { _points.clearChangeTracking() }
///   mutating func trackChanges(since old: Self) { _points.trackChanges(since: old._points) }
///   func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
///     try _points.changeset(since: old._points)
///   }
///   mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
///     try _points.revert(changeset, strictly: strictly)
///   }
/// }
/// ```
public struct ZDCMergeContext: Sendable {
  /// Whether the local side wins where both changed something. The actual merge uses false. A second merge with true
  /// determines what was lost (``ZDCMergeReport/lost``). A type that ignores this flag cannot restore what it lost.
  public let prefersLocal: Bool
  private var path: [String] = []
  private var conflicts: [ZDCMergeConflict] = []
  /// The first value that could not be encoded: without it the merge would lose something silently.
  private(set) var failure: ZDCSyncableError?

  init(prefersLocal: Bool = false) {
    self.prefersLocal = prefersLocal
  }

  /// Merges a part of the value; the paths of its conflicts continue with `component`.
  public mutating func descend(_ component: String, _ body: (inout ZDCMergeContext) -> Void) {
    path.append(component)
    body(&self)
    path.removeLast()
  }

  /// Merges the value of a key.
  mutating func descend(key: some Encodable, _ body: (inout ZDCMergeContext) -> Void) {
    descend(noting { () throws(ZDCSyncableError) in try ValueCoding.text(key) } ?? "?", body)
  }

  /// Reports that `mine` lost. nil means "absent".
  ///
  /// If a value cannot be encoded, the merge throws `notEncodable` at its end.
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
