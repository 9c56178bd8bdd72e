internal import Foundation

/// The changes in a dictionary, as the old values.
///
/// Leaves: added keys; replaced or removed keys; the old values of these; keys whose value changed inside. Children:
/// the changesets of the last.
struct KeyedChange<Key: Hashable & Codable & Sendable, Value: Codable & Equatable & Sendable> {
  typealias Values = [Key: Value]

  private var added: [Key] = []
  private var replaced: [(key: Key, old: Value)] = []
  private var nested: [(key: Key, changes: ChangeTree)] = []

  // MARK: Computing the difference

  init(from old: Values, to new: Values) throws(ZDCSyncableError) {
    added = try ValueCoding.sorted(new.keys.filter { old[$0] == nil })
    for key in try ValueCoding.sorted(old.keys.filter { Self.differs(old[$0], new[$0]) }) {
      guard let before = old[key] else { continue }
      if NestedValue.isSyncable(Value.self), let now = new[key] {
        if let changes = try NestedValue.changeset(now, since: before) { nested.append((key, changes.asPart)) }
      } else {
        replaced.append((key, before))
      }
    }
  }

  private static func differs(_ old: Value?, _ new: Value?) -> Bool { !ThreeWay.isSame(old, new) }

  func tree() throws(ZDCSyncableError) -> ChangeTree? {
    guard !(added.isEmpty && replaced.isEmpty && nested.isEmpty) else { return nil }
    let leaves = [
      try ValueCoding.encode(added), try ValueCoding.encode(replaced.map(\.key)),
      try ValueCoding.encode(replaced.map(\.old)), try ValueCoding.encode(nested.map(\.key)),
    ]
    return ChangeTree(.keyed, leaves: leaves, children: nested.map(\.changes))
  }

  // MARK: Undoing

  init(_ tree: ChangeTree) throws(ZDCSyncableError) {
    try tree.expectLeaves(4)
    added = try tree.leaf(0)
    let keys = try tree.leaf(1, [Key].self)
    let values = try tree.leaf(2, [Value].self)
    let nestedKeys = try tree.leaf(3, [Key].self)
    guard keys.count == values.count else { throw ZDCSyncableError(.malformedChangeset) }
    try tree.expectChildren(nestedKeys.count)
    replaced = Array(zip(keys, values)).map { (key: $0.0, old: $0.1) }
    nested = Array(zip(nestedKeys, tree.children)).map { (key: $0.0, changes: $0.1) }
  }

  func revert(_ values: inout Values, strictly: Bool) throws(ZDCSyncableError) {
    for key in added where values.removeValue(forKey: key) == nil && strictly {
      throw ZDCSyncableError(.mismatchedChangeset)
    }
    for change in replaced { values[change.key] = change.old }
    for change in nested {
      if var value = values[change.key] {
        try NestedValue.revert(&value, ZDCChangeset(change.changes), strictly: strictly)
        values[change.key] = value
      } else if strictly {
        throw ZDCSyncableError(.mismatchedChangeset)
      }
    }
  }

  // MARK: Merging

  static func merge(_ mine: inout Values, base: Values, cloudVersion: Values, context: inout ZDCMergeContext) {
    let keys = Set(mine.keys).union(base.keys).union(cloudVersion.keys)
    for key in keys where differs(mine[key], cloudVersion[key]) {
      context.descend(key: key) { context in
        mine[key] = merged(base: base[key], mine: mine[key], theirs: cloudVersion[key], context: &context)
      }
    }
  }

  private static func merged(
    base: Value?, mine: Value?, theirs: Value?, context: inout ZDCMergeContext
  ) -> Value? {
    guard NestedValue.isSyncable(Value.self), let base, var result = mine, let theirs else {
      return ThreeWay.resolve(base: base, mine: mine, theirs: theirs, context: &context)
    }
    NestedValue.merge(&result, base: base, cloudVersion: theirs, context: &context)
    return result
  }
}
