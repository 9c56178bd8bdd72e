/// The reason that a changeset cannot be used. The value is unchanged by the failed call.
public enum ZDCSyncableError: Error, Sendable, Hashable {
  /// The value has changes that are not in a changeset yet: first take `changeset()`, or call `clearChangeTracking()`
  /// or `rollback()`. Otherwise they would be lost, or mistaken for another device's changes.
  case hasChanges
  /// The bytes are not a changeset, or are a damaged one.
  case malformedChangeset
  /// The changeset is of a change that did not lead to this value: it refers to missing keys or to another kind of
  /// value.
  case mismatchedChangeset
  /// The changeset contains values of another type than the value has now; the app's type may have changed since.
  case incorrectType
  /// One of the value's own values cannot be encoded, so its change cannot be described. The changes stay tracked.
  case notEncodable
}

extension ZDCSyncableError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .hasChanges: "the value has changes that are in no changeset; take changeset() first"
    case .malformedChangeset: "the changeset is damaged"
    case .mismatchedChangeset: "the changeset belongs to another value or another version of it"
    case .incorrectType: "the changeset holds values of another type"
    case .notEncodable: "a value cannot be encoded"
    }
  }
}
