/// A model type of the app, with named properties that are merged one by one.
///
/// Swift has no writable reflection, and a macro would make every app build swift-syntax. So a record lists its
/// properties once; ``unlistedFields(of:)`` finds a forgotten one in a test.
///
/// ```swift
/// struct Task: ZDCRecord, Codable, Equatable {
///   @Syncable var title: String
///   @Syncable var completed = false
///   var labels: ZDCSet<String> = []
///
///   static var syncableFields: [ZDCField<Task>] {
///     [ZDCField("title", \._title), ZDCField("completed", \._completed), ZDCField("labels", \.labels)]
///   }
/// }
/// ```
///
/// Mark properties of plain types with `@Syncable` and list them with an underscore. Properties that are themselves
/// syncable need no wrapper. Undo and merge leave unlisted properties alone.
///
/// Records are structs: assignment makes a copy, and a stored record cannot change behind the database's back. A class
/// does not compile, because its copy is the same object and taking a changeset would undo the edit. Turn a class of an
/// older app into a struct, or keep the class and give it a property that is a record.
public protocol ZDCRecord: ZDCSyncable {
  /// The tracked properties, with the names that changesets use for them. Queued uploads store these names, so keep a
  /// name when you rename its property.
  static var syncableFields: [ZDCField<Self>] { get }
}

/// One property of a ``ZDCRecord``.
///
/// ```swift
/// struct Note: ZDCRecord, Codable, Equatable {
///   @Syncable var title = ""
///
///   static var syncableFields: [ZDCField<Note>] { [ZDCField("title", \._title)] }
/// }
/// ```
public struct ZDCField<Record> {
  let name: String
  let hasChanges: (Record) -> Bool
  let restoreOriginal: (inout Record) -> Void
  let clear: (inout Record) -> Void
  let track: (inout Record, _ old: Record) -> Void
  let changeset: (Record, _ old: Record) throws(ZDCSyncableError) -> ZDCChangeset?
  let revert: (inout Record, ZDCChangeset, _ strictly: Bool) throws(ZDCSyncableError) -> Void
  let merge: (inout Record, _ base: Record, _ cloud: Record, inout ZDCMergeContext) -> Void

  /// Describes one property of a record.
  ///
  /// - Parameters:
  ///   - name: The property's name in changesets.
  ///   - path: The key path of the property if it is itself syncable, otherwise of its wrapper: `\._title` for
  ///     `@Syncable var title`.
  public init<Value: ZDCSyncable>(_ name: String, _ path: WritableKeyPath<Record, Value>) {
    self.name = name
    hasChanges = { $0[keyPath: path].hasChanges }
    restoreOriginal = { $0[keyPath: path].rollback() }
    clear = { $0[keyPath: path].clearChangeTracking() }
    track = { $0[keyPath: path].trackChanges(since: $1[keyPath: path]) }
    changeset = { (record, old) throws(ZDCSyncableError) in
      try record[keyPath: path].changeset(since: old[keyPath: path])
    }
    revert = { (record, changeset, strictly) throws(ZDCSyncableError) in
      try record[keyPath: path].revert(changeset, strictly: strictly)
    }
    merge = { $0[keyPath: path].merge(base: $1[keyPath: path], cloudVersion: $2[keyPath: path], context: &$3) }
  }
}

extension ZDCRecord {
  /// Whether any of the ``syncableFields`` has changed.
  public var hasChanges: Bool { Self.syncableFields.contains { $0.hasChanges(self) } }

  /// The record with all ``syncableFields`` as they were when changes were last taken or cleared.
  public var original: Self {
    var copy = self
    for field in Self.syncableFields { field.restoreOriginal(&copy) }
    return copy
  }

  /// Makes the current values of the ``syncableFields`` the baseline.
  public mutating func clearChangeTracking() {
    for field in Self.syncableFields { field.clear(&self) }
  }

  /// Makes the fields of `old` the baseline for later changes.
  public mutating func trackChanges(since old: Self) {
    for field in Self.syncableFields { field.track(&self, old) }
  }

  /// Returns the changes of the ``syncableFields`` from `old` to this record; nil if there are none.
  public func changeset(since old: Self) throws(ZDCSyncableError) -> ZDCChangeset? {
    var changed: [(name: String, changes: ChangeTree)] = []
    for field in Self.syncableFields {
      if let changes = try field.changeset(self, old) { changed.append((field.name, changes.asPart)) }
    }
    guard !changed.isEmpty else { return nil }
    let names = try ValueCoding.encode(changed.map(\.name))
    return ZDCChangeset(ChangeTree(.record, leaves: [names], children: changed.map(\.changes)))
  }

  /// Restores the old values of the fields in a changeset; see ``ZDCSyncable/revert(_:strictly:)``.
  public mutating func revert(_ changeset: ZDCChangeset, strictly: Bool) throws(ZDCSyncableError) {
    guard let tree = try changeset.tree(.record) else { return }
    try tree.expectLeaves(1)
    let names = try tree.leaf(0, [String].self)
    try tree.expectChildren(names.count)
    let fieldsByName = Dictionary(Self.syncableFields.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for (name, child) in zip(names, tree.children) {
      if let field = fieldsByName[name] {
        try field.revert(&self, ZDCChangeset(child), strictly)
      } else if strictly {
        throw ZDCSyncableError(.mismatchedChangeset)
      }
    }
  }

  /// Merges field by field, in the order of ``syncableFields``; see ``ZDCSyncable/merge(base:cloudVersion:context:)``.
  public mutating func merge(base: Self, cloudVersion: Self, context: inout ZDCMergeContext) {
    for field in Self.syncableFields {
      context.descend(field.name) { field.merge(&self, base, cloudVersion, &$0) }
    }
  }

  /// Returns a copy, as records of the original framework do. Assignment has the same effect.
  public func copy() -> Self { self }

  /// Returns the syncable properties of a record that ``syncableFields`` omits or names twice. A name must match its
  /// property to be found.
  ///
  /// A forgotten property compiles, and is neither tracked nor merged. So give each record a test:
  ///
  /// ```swift
  /// #expect(Task.unlistedFields(of: Task(title: "any")) == [])
  /// ```
  public static func unlistedFields(of record: Self) -> [String] {
    let listed = syncableFields.map(\.name)
    let stored = Mirror(reflecting: record).children.compactMap { child in
      child.value is any ZDCSyncable ? child.label.map { $0.hasPrefix("_") ? String($0.dropFirst()) : $0 } : nil
    }
    let twice = Dictionary(grouping: listed, by: \.self).filter { $0.value.count > 1 }.keys
    return (Set(stored).subtracting(listed)).union(twice).sorted()
  }
}
