/// A value that knows what was changed in it since the last changeset was taken, can undo it, and can merge its changes
/// with those of others.
///
/// Apps conform their model types to ``ZDCRecord``, which needs one line per property, and use the collections
/// ``ZDCDictionary``, ``ZDCOrderedDictionary``, ``ZDCArray``, ``ZDCSet`` and ``ZDCOrderedSet`` where two devices may
/// change different elements at once.
///
/// ## The rules of a merge
/// For each property or key, let O be its value before the oldest of the pending changesets that mention it, L the
/// local value and C the cloud's:
///
/// | situation | result |
/// |---|---|
/// | not changed locally (L = O) | C, also if it was removed there |
/// | L = C | nothing to do |
/// | changed locally only (C = O) | L, also if it was added or deleted locally |
/// | both changed it, differently | **C wins**; the loser is in the ``ZDCMergeReport`` |
/// | changed locally, deleted in the cloud | the deletion wins; the loser is in the report |
/// | deleted locally, changed in the cloud | C comes back; the deletion is in the report |
/// | a syncable value inside, there on all three sides | merged by these same rules |
/// | elements of sets and arrays | added or removed by either side: added or removed |
/// | order | moved by one side: that side's place; by both: the cloud's, and the report says so |
///
/// A merge is no data type that converges by itself: the result depends on which version was in the cloud first.
/// Devices agree because each upload was merged with the version that it replaces.
///
/// ## Topics
/// ### Changes
/// - ``hasChanges``
/// - ``changeset()``
/// - ``peakChangeset()``
/// - ``clearChangeTracking()``
/// - ``rollback()``
/// ### Undo
/// - ``undo(_:)``
/// - ``performUndo(_:)``
/// ### Merging
/// - ``merge(cloudVersion:pendingChangesets:)``
/// - ``mergeReporting(cloudVersion:pendingChangesets:)``
/// - ``mergeChangesets(_:)``
/// - ``importChangesets(_:)``
public protocol ZDCSyncable: Sendable {
  /// Keeps classes from conforming: a copy of an object is the same object, so taking its changes would undo them.
  static var _copiesAreIndependent: Void { get }

  /// Whether something differs from what it was when changes were last taken or cleared. A value that was changed and
  /// changed back has none.
  var hasChanges: Bool { get }

  /// The value as it was when changes were last taken or cleared.
  var original: Self { get }

  /// Forgets what was changed: the value as it is now is the new beginning.
  mutating func clearChangeTracking()

  /// Makes `old` what later changes are compared with.
  mutating func trackChanges(since old: Self)

  /// What changed from `old` to this value, tracked or not; nil if nothing did.
  ///
  /// - Throws: `notEncodable`, as everything does that makes a changeset.
  func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset?

  /// Puts the old values of a changeset back. Types implement it; apps call ``ZDCSyncable/undo(_:)``.
  ///
  /// - Parameter strictly: Whether it is an error that the changeset speaks of keys that are not there. In a merge it
  ///   is not: what came from the cloud since may have removed them.
  /// - Throws: `malformedChangeset`, `mismatchedChangeset`, `incorrectType`; the value may then be half-way.
  mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError)

  /// Merges with the cloud's version, where `base` is what both began with. Types implement it; apps call
  /// ``ZDCSyncable/merge(cloudVersion:pendingChangesets:)``.
  mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext)
}

// MARK: - Values only

extension ZDCSyncable {
  public static var _copiesAreIndependent: Void { () }
}

extension ZDCSyncable where Self: AnyObject {
  @available(*, unavailable, message: "a syncable type must be a struct: tracking changes of a class would undo them")
  public static var _copiesAreIndependent: Void { () }
}

// MARK: - Changes

extension ZDCSyncable {
  /// What was changed since the last call, or nil, and begins anew.
  ///
  /// - Throws: `notEncodable` if one of the old values refuses to be encoded; the changes stay tracked.
  public mutating func changeset() throws(ZDCSyncableError) -> ZDCChangeset? {
    let changeset = try peakChangeset()
    clearChangeTracking()
    return changeset
  }

  /// What was changed since the last changeset was taken, or nil; goes on tracking.
  public func peakChangeset() throws(ZDCSyncableError) -> ZDCChangeset? {
    try changeset(since: original)
  }

  /// Takes back what was changed since the last changeset was taken.
  public mutating func rollback() {
    self = original
  }
}

// MARK: - Undo

extension ZDCSyncable {
  /// Takes back a change.
  ///
  /// - Parameter changeset: Of the newest change of this value that was not undone.
  /// - Returns: The changeset that, undone in turn, does the change again.
  /// - Throws: ``ZDCSyncableError``; the value is then unchanged. `hasChanges` if it has changes that no changeset
  ///   holds.
  public mutating func undo(_ changeset: ZDCChangeset) throws(ZDCSyncableError) -> ZDCChangeset {
    var undone = self
    try undone.performUndo(changeset)
    let redo = try undone.changeset() ?? .empty
    self = undone
    return redo
  }

  /// Like ``undo(_:)``, and leaves what it does in the tracked changes: the next ``changeset()`` is the redo.
  public mutating func performUndo(_ changeset: ZDCChangeset) throws(ZDCSyncableError) {
    let base = try self.base(of: [changeset], strictly: true)
    let before = self
    self = base
    trackChanges(since: before)
  }

  /// What the value was before these changes.
  fileprivate func base(of changesets: [ZDCChangeset], strictly: Bool) throws(ZDCSyncableError) -> Self {
    guard !hasChanges else { throw .hasChanges }
    var base = self
    for changeset in changesets.reversed() { try base.revert(changeset, strictly: strictly) }
    base.clearChangeTracking()
    return base
  }
}

// MARK: - Merging

extension ZDCSyncable {
  /// Merges with the version that was found in the cloud; the rules are those of ``ZDCSyncable``.
  ///
  /// ```swift
  /// var task = Task(title: "Buy milk")
  /// task.title = "Buy oat milk"
  /// let changeset = try task.changeset()  // goes with queueDataUpload(forNodeID:withChangeset:)
  ///
  /// var cloudVersion = Task(title: "Buy milk")  // what another device did meanwhile
  /// cloudVersion.completed = true
  ///
  /// try task.merge(cloudVersion: cloudVersion, pendingChangesets: [changeset].compactMap(\.self))
  /// // task.title == "Buy oat milk", task.completed == true
  /// ```
  ///
  /// - Parameters:
  ///   - cloudVersion: The value that was downloaded.
  ///   - pendingChangesets: Of this value's changes that are not in the cloud yet, oldest first, as
  ///     `pendingChangesets(forNodeID:)` gives them. Changes of an upload that was queued without one are not
  ///     known, and the cloud wins over them.
  /// - Returns: What the merge changed here; undoing it gives the local value back.
  /// - Throws: ``ZDCSyncableError``; the value is then unchanged, and the app decides, for instance for the cloud's.
  @discardableResult
  public mutating func merge(
    cloudVersion: Self, pendingChangesets: [ZDCChangeset]
  ) throws(ZDCSyncableError) -> ZDCChangeset {
    try mergeReporting(cloudVersion: cloudVersion, pendingChangesets: pendingChangesets).undo
  }

  /// Like ``merge(cloudVersion:pendingChangesets:)``, and tells which local changes lost.
  public mutating func mergeReporting(
    cloudVersion: Self, pendingChangesets: [ZDCChangeset]
  ) throws(ZDCSyncableError) -> ZDCMergeReport {
    let base = try self.base(of: pendingChangesets, strictly: false)
    var merged = self
    var context = ZDCMergeContext()
    merged.merge(base: base, cloudVersion: cloudVersion, context: &context)
    if let failure = context.failure { throw failure }
    merged.clearChangeTracking()
    let report = ZDCMergeReport(
      conflicts: context.sortedConflicts, undo: try merged.changeset(since: self) ?? .empty,
      remaining: try merged.changeset(since: cloudVersion),
      lost: context.hasConflicts ? try lost(in: merged, base: base, cloudVersion: cloudVersion) : nil)
    self = merged
    return report
  }

  /// What the merge would have been, had the local side won, as a step back from what it is.
  private func lost(in merged: Self, base: Self, cloudVersion: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    var regained = self
    var context = ZDCMergeContext(prefersLocal: true)
    regained.merge(base: base, cloudVersion: cloudVersion, context: &context)
    return try merged.changeset(since: regained)
  }

  /// The changesets of consecutive changes, oldest first, as one. The value is not changed.
  ///
  /// - Throws: ``ZDCSyncableError``, `mismatchedChangeset` if they are not those that led to this value.
  public func mergeChangesets(_ changesets: [ZDCChangeset]) throws(ZDCSyncableError) -> ZDCChangeset {
    try changeset(since: try base(of: changesets, strictly: true)) ?? .empty
  }

  /// Makes the changes of these changesets, oldest first, tracked changes again: they are in the next ``changeset()``,
  /// and ``rollback()`` takes them back.
  ///
  /// - Throws: As ``mergeChangesets(_:)``.
  public mutating func importChangesets(_ changesets: [ZDCChangeset]) throws(ZDCSyncableError) {
    trackChanges(since: try base(of: changesets, strictly: true))
  }
}
