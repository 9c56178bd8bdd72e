/// Operations on values of a generic type that may or may not be syncable.
enum NestedValue {
  /// Decides by the static type. An optional is merged as a whole; otherwise "absent" and "changed" would be
  /// indistinguishable.
  static func isSyncable<Value>(_: Value.Type) -> Bool { Value.self is any ZDCSyncable.Type }

  static func clearChangeTracking<Value>(_ value: inout Value) {
    guard isSyncable(Value.self), var part = value as? any ZDCSyncable, part.hasChanges else { return }
    part.clearChangeTracking()
    value = part as? Value ?? value
  }

  static func trackChanges<Value>(_ value: inout Value, since old: Value) {
    guard isSyncable(Value.self), var part = value as? any ZDCSyncable else { return }
    part.trackChanges(sinceAny: old)
    value = part as? Value ?? value
  }

  static func changeset<Value>(_ value: Value, since old: Value) throws(ZDCSyncableError) -> ZDCChangeset? {
    guard isSyncable(Value.self), let part = value as? any ZDCSyncable else { return nil }
    return try part.changeset(sinceAny: old)
  }

  static func revert<Value>(
    _ value: inout Value, _ changeset: ZDCChangeset, strictly: Bool
  ) throws(ZDCSyncableError) {
    guard isSyncable(Value.self), var part = value as? any ZDCSyncable else {
      throw ZDCSyncableError(.mismatchedChangeset)
    }
    try part.revert(changeset, strictly: strictly)
    value = part as? Value ?? value
  }

  static func merge<Value>(_ value: inout Value, base: Value, cloudVersion: Value, context: inout ZDCMergeContext) {
    guard isSyncable(Value.self), var part = value as? any ZDCSyncable else { return }
    part.merge(baseAny: base, cloudVersion: cloudVersion, context: &context)
    value = part as? Value ?? value
  }
}

/// The same calls for values that the caller knows to be of the same type.
extension ZDCSyncable {
  fileprivate mutating func trackChanges(sinceAny old: Any) {
    guard let old = old as? Self else { return }
    trackChanges(since: old)
  }

  fileprivate func changeset(sinceAny old: Any) throws(ZDCSyncableError) -> ZDCChangeset? {
    guard let old = old as? Self else { return nil }
    return try changeset(since: old)
  }

  fileprivate mutating func merge(baseAny base: Any, cloudVersion: Any, context: inout ZDCMergeContext) {
    guard let base = base as? Self, let cloudVersion = cloudVersion as? Self else { return }
    merge(base: base, cloudVersion: cloudVersion, context: &context)
  }
}
