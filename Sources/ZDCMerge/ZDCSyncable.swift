/// A value that tracks its changes since the last changeset was taken, can undo them, and can merge them with the
/// changes of others.
///
/// Apps conform their model types to ``ZDCRecord``, which needs one line per property. Use the collections
/// ``ZDCDictionary``, ``ZDCOrderedDictionary``, ``ZDCArray``, ``ZDCSet`` and ``ZDCOrderedSet`` where two devices may
/// change different elements concurrently.
///
/// ## The rules of a merge
/// For each property or key, let O be its value before the oldest pending changeset that mentions it, L the local value
/// and C the cloud's:
///
/// | situation | result |
/// |---|---|
/// | not changed locally (L = O) | C, even if it was removed there |
/// | L = C | nothing to do |
/// | changed locally only (C = O) | L, even if it was added or deleted locally |
/// | both changed it, differently | **C wins**; the loser is in the ``ZDCMergeReport`` |
/// | changed locally, deleted in the cloud | the deletion wins; the loser is in the report |
/// | deleted locally, changed in the cloud | C comes back; the deletion is in the report |
/// | a nested syncable value, present on all three sides | merged by these same rules |
/// | elements of sets and arrays | an addition or removal by either side is kept |
/// | order | moved by one side: that side's position; by both: the cloud's, and the report lists it |
///
/// This merge is not a CRDT: the result depends on which version reached the cloud first. Devices converge because each
/// upload was merged with the version that it replaces.
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
  /// Prevents classes from conforming: a copy of an object is the same object, so taking its changes would undo them.
  static var _copiesAreIndependent: Void { get }

  /// Whether the value differs from its state when changes were last taken or cleared. False for a value that was
  /// changed and changed back.
  var hasChanges: Bool { get }

  /// The value's state when changes were last taken or cleared.
  var original: Self { get }

  /// Discards the tracked changes and makes the current value the new baseline.
  mutating func clearChangeTracking()

  /// Makes `old` the baseline for later changes.
  mutating func trackChanges(since old: Self)

  /// Returns the changes from `old` to this value, tracked or not; nil if there are none.
  ///
  /// - Throws: `notEncodable`, like every call that makes a changeset.
  func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset?

  /// Restores the old values in a changeset. Types implement it; apps call ``ZDCSyncable/undo(_:)``.
  ///
  /// - Parameter strictly: Whether a changeset that refers to missing keys is an error. During a merge it is not,
  ///   because later changes from the cloud may have removed them.
  /// - Throws: `malformedChangeset`, `mismatchedChangeset`, `incorrectType`; the value may then be partially reverted.
  mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError)

  /// Merges with the cloud's version, where `base` is the common ancestor. Types implement it; apps call
  /// ``ZDCSyncable/merge(cloudVersion:pendingChangesets:)``.
  mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext)
}

// MARK: - Values only

extension ZDCSyncable {
  /// Satisfied by every value type.
  public static var _copiesAreIndependent: Void { () }
}

extension ZDCSyncable where Self: AnyObject {
  /// Unavailable, so that a class does not compile as a syncable type.
  @available(*, unavailable, message: "a syncable type must be a struct: tracking changes of a class would undo them")
  public static var _copiesAreIndependent: Void { () }
}

// MARK: - Changes

extension ZDCSyncable {
  /// Returns the changes since the last call, or nil if there are none, and resets change tracking.
  ///
  /// Take it once for each upload, and queue it with that upload.
  ///
  /// ```swift
  /// task.title = "Buy oat milk"
  /// let changeset = try task.changeset()  // a second call would return nil
  /// cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: changeset)
  /// ```
  ///
  /// - Throws: `notEncodable` if an old value cannot be encoded; the changes stay tracked.
  public mutating func changeset() throws(ZDCSyncableError) -> ZDCChangeset? {
    let changeset = try peakChangeset()
    clearChangeTracking()
    return changeset
  }

  /// Returns the changes since the last changeset was taken, or nil if there are none. The changes stay tracked.
  ///
  /// ```swift
  /// task.title = "oat milk"
  /// let isChanged = try task.peakChangeset() != nil  // the change stays tracked
  /// ```
  ///
  /// - Throws: `notEncodable` if an old value cannot be encoded.
  public func peakChangeset() throws(ZDCSyncableError) -> ZDCChangeset? {
    try changeset(since: original)
  }

  /// Reverts the changes since the last changeset was taken.
  ///
  /// For an edit that the user cancels. Changes of which a changeset was taken stay; ``undo(_:)`` reverts those.
  ///
  /// ```swift
  /// task.title = "Buy oat milk"
  /// task.rollback()  // the title is the one before
  /// ```
  public mutating func rollback() {
    self = original
  }
}

// MARK: - Undo

extension ZDCSyncable {
  /// Undoes a change.
  ///
  /// The value has no tracked changes afterwards. Queue an upload with the returned changeset, because an undo is a
  /// change like any other.
  ///
  /// ```swift
  /// task.title = "Buy oat milk"
  /// let change = try task.changeset() ?? .empty
  /// let redo = try task.undo(change)
  /// _ = try task.undo(redo)  // task.title == "Buy oat milk" again
  /// ```
  ///
  /// - Parameter changeset: The changeset of this value's newest change that has not been undone.
  /// - Returns: The redo changeset: undoing it redoes the change.
  /// - Throws: ``ZDCSyncableError``; the value is then unchanged. `hasChanges` if the value has changes that are in no
  ///   changeset.
  public mutating func undo(_ changeset: ZDCChangeset) throws(ZDCSyncableError) -> ZDCChangeset {
    var undone = self
    try undone.performUndo(changeset)
    let redo = try undone.changeset() ?? .empty
    self = undone
    return redo
  }

  /// Like ``undo(_:)``, but tracks its effect as changes: the next ``changeset()`` is the redo.
  ///
  /// ```swift
  /// guard let changeset = try task.changeset() else { return }
  /// try task.performUndo(changeset)
  /// ```
  ///
  /// - Throws: As ``undo(_:)``; the value is then unchanged.
  public mutating func performUndo(_ changeset: ZDCChangeset) throws(ZDCSyncableError) {
    let base = try self.base(of: [changeset], strictly: true)
    let before = self
    self = base
    trackChanges(since: before)
  }

  /// Returns the value before these changes.
  fileprivate func base(of changesets: [ZDCChangeset], strictly: Bool) throws(ZDCSyncableError) -> Self {
    guard !hasChanges else { throw ZDCSyncableError(.hasChanges) }
    var base = self
    for changeset in changesets.reversed() { try base.revert(changeset, strictly: strictly) }
    base.clearChangeTracking()
    return base
  }
}

// MARK: - Merging

extension ZDCSyncable {
  /// Merges with the version from the cloud, by the rules in ``ZDCSyncable``.
  ///
  /// ```swift
  /// var task = Task(title: "Buy milk")
  /// task.title = "Buy oat milk"
  /// let changeset = try task.changeset()  // goes with queueDataUpload(forNodeID:withChangeset:)
  ///
  /// var cloudVersion = Task(title: "Buy milk")  // the concurrent change of another device
  /// cloudVersion.completed = true
  ///
  /// try task.merge(cloudVersion: cloudVersion, pendingChangesets: [changeset].compactMap(\.self))
  /// // task.title == "Buy oat milk", task.completed == true
  /// ```
  ///
  /// - Parameters:
  ///   - cloudVersion: The downloaded value.
  ///   - pendingChangesets: The changesets of this value's changes that are not in the cloud yet, oldest first, as
  ///     returned by `pendingChangesets(forNodeID:)`. Changes of an upload that was queued without a changeset are
  ///     unknown, and the cloud wins over them.
  /// - Returns: The changes that the merge made to the local value; undoing them restores it.
  /// - Throws: ``ZDCSyncableError``; the value is then unchanged. The app decides what to do, for example take the
  ///   cloud's version.
  @discardableResult
  public mutating func merge(
    cloudVersion: Self, pendingChangesets: [ZDCChangeset]
  ) throws(ZDCSyncableError) -> ZDCChangeset {
    try mergeReporting(cloudVersion: cloudVersion, pendingChangesets: pendingChangesets).undo
  }

  /// Like ``merge(cloudVersion:pendingChangesets:)``, but reports which local changes lost.
  ///
  /// ```swift
  /// let report = try task.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
  /// for conflict in report.conflicts { print("both changed", conflict.path.joined(separator: "/")) }
  /// ```
  ///
  /// - Throws: As ``merge(cloudVersion:pendingChangesets:)``; the value is then unchanged.
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

  /// Returns the changeset that leads from the merged value to the one in which the local side had won.
  private func lost(in merged: Self, base: Self, cloudVersion: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    var regained = self
    var context = ZDCMergeContext(prefersLocal: true)
    regained.merge(base: base, cloudVersion: cloudVersion, context: &context)
    return try merged.changeset(since: regained)
  }

  /// Combines the changesets of consecutive changes, oldest first, into one. Does not change the value.
  ///
  /// ```swift
  /// let both = try task.mergeChangesets(pending)  // undoes all of them in one step
  /// ```
  ///
  /// - Throws: ``ZDCSyncableError``, `mismatchedChangeset` if these changesets did not lead to this value.
  public func mergeChangesets(_ changesets: [ZDCChangeset]) throws(ZDCSyncableError) -> ZDCChangeset {
    try changeset(since: try base(of: changesets, strictly: true)) ?? .empty
  }

  /// Makes the changes of these changesets, oldest first, tracked changes again. The next ``changeset()`` contains
  /// them, and ``rollback()`` reverts them.
  ///
  /// ```swift
  /// try task.importChangesets(pending)
  /// task.completed = true
  /// let changeset = try task.changeset()  // everything that is not in the cloud yet, in one changeset
  /// ```
  ///
  /// - Throws: Like ``mergeChangesets(_:)``.
  public mutating func importChangesets(_ changesets: [ZDCChangeset]) throws(ZDCSyncableError) {
    trackChanges(since: try base(of: changesets, strictly: true))
  }
}
