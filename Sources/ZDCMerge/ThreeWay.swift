/// The merge rule for a single value.
enum ThreeWay {
  /// Resolves one value; nil means "absent". The cases are those of the table in ``ZDCSyncable``.
  static func resolve<Value: Equatable & Encodable>(
    base: Value?, mine: Value?, theirs: Value?, context: inout ZDCMergeContext
  ) -> Value? {
    // 1. Not changed here.
    if isSame(mine, base) { return theirs }
    // 2. Both agree, or changed here only.
    if isSame(mine, theirs) || isSame(theirs, base) { return mine }
    // 3. Both changed it: the version that reached the cloud first wins.
    if context.prefersLocal { return mine }
    context.report(base: base, mine: mine, theirs: theirs, result: theirs)
    return theirs
  }

  /// Resolves whether an element is present. Two sides cannot both change a Boolean and disagree.
  static func resolve(base: Bool, mine: Bool, theirs: Bool) -> Bool {
    mine == base ? theirs : mine
  }

  /// Whether the values are equal, or both unequal to themselves: NaN alone does not make a property changed.
  static func isSame<Value: Equatable>(_ a: Value, _ b: Value) -> Bool {
    a == b || (a != a && b != b)
  }
}
