/// The one rule for a single value, whatever it belongs to.
enum ThreeWay {
  /// nil stands for "not there". The cases are those of the table at ``ZDCSyncable``.
  static func resolve<Value: Equatable & Encodable>(
    base: Value?, mine: Value?, theirs: Value?, context: inout ZDCMergeContext
  ) -> Value? {
    // 1. Not changed here.
    if isSame(mine, base) { return theirs }
    // 2. Both agree, or changed here only.
    if isSame(mine, theirs) || isSame(theirs, base) { return mine }
    // 3. Both changed it: whoever was in the cloud first has won.
    if context.prefersLocal { return mine }
    context.report(base: base, mine: mine, theirs: theirs, result: theirs)
    return theirs
  }

  /// Whether an element is there. Two sides cannot both change a yes or no and disagree.
  static func resolve(base: Bool, mine: Bool, theirs: Bool) -> Bool {
    mine == base ? theirs : mine
  }

  /// Equal, or both unequal to themselves: a property that is not a number has not been changed for that reason.
  static func isSame<Value: Equatable>(_ a: Value, _ b: Value) -> Bool {
    a == b || (a != a && b != b)
  }
}
