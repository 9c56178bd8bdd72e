/// Why a changeset cannot be used. The value is as it was before the call.
public enum ZDCSyncableError: Error, Sendable, Hashable {
  /// The value has changes that no changeset holds yet: take `changeset()`, or call `clearChangeTracking()` or
  /// `rollback()` first. Otherwise they would be lost, or be taken for somebody else's.
  case hasChanges
  /// The bytes are no changeset, or one that was damaged.
  case malformedChangeset
  /// It is a changeset, but not of a change that led to this value: it speaks of keys that are not there, or of another
  /// kind of value.
  case mismatchedChangeset
  /// It holds values of another type than the value has now; the app's type may have changed since.
  case incorrectType
  /// One of the value's own values refuses to be encoded: nothing can be told of its change. The changes stay tracked.
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
