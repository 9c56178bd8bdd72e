/// The reason that a changeset cannot be used. The value is unchanged by the failed call.
///
/// ```swift
/// do { _ = try task.merge(cloudVersion: theirs, pendingChangesets: pending) }
/// catch where error.code == .mismatchedChangeset { task = theirs }
/// ```
public struct ZDCSyncableError: Error, Hashable, Sendable {
  /// Why the changeset cannot be made or applied.
  public let code: Code

  /// Creates an error, for previews and tests.
  public init(_ code: Code) {
    self.code = code
  }
}

extension ZDCSyncableError {
  /// The kind of error. Later versions may add codes, so a `switch` needs a `default`.
  ///
  /// ```swift
  /// do {
  ///   try task.merge(cloudVersion: theirs, pendingChangesets: pending)
  /// } catch let error as ZDCSyncableError where error.code == .mismatchedChangeset {
  ///   report(error)
  /// }
  /// ```
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    package enum Name: String, CaseIterable, Sendable {
      case hasChanges, malformedChangeset, mismatchedChangeset, incorrectType, notEncodable
    }

    package let name: Name

    private init(_ name: Name) { self.name = name }

    package static var allCases: [Self] { Name.allCases.map(Self.init) }

    /// The code's name, which is stable.
    public var description: String { name.rawValue }

    /// The value has changes that are not in a changeset yet. They would be lost, or mistaken for another device's
    /// changes. First take `changeset()`, or call `clearChangeTracking()` or `rollback()`.
    public static let hasChanges = Self(.hasChanges)
    /// The bytes are not a changeset, or are a damaged one. Discard the changeset.
    public static let malformedChangeset = Self(.malformedChangeset)
    /// The changeset is of a change that did not lead to this value: it refers to missing keys or to another kind of
    /// value. Use the changesets of this value, newest first.
    public static let mismatchedChangeset = Self(.mismatchedChangeset)
    /// The changeset contains values of another type than the value has now. Give the app's type a decoder that reads
    /// its earlier forms, or discard the changeset.
    public static let incorrectType = Self(.incorrectType)
    /// One of the value's own values cannot be encoded, so its change cannot be described. The changes stay tracked.
    /// Correct the value, such as a `Double` that is not a number.
    public static let notEncodable = Self(.notEncodable)
  }
}

extension ZDCSyncableError.Code {
  /// What failed and what to do about it.
  public var explanation: String {
    switch name {
    case .hasChanges: "the value has changes that are in no changeset; take changeset() first"
    case .malformedChangeset: "the changeset is damaged; discard it"
    case .mismatchedChangeset:
      "the changeset belongs to another value or another version of it; use this value's changesets, newest first"
    case .incorrectType: "the changeset holds values of another type; decode the earlier type too, or discard it"
    case .notEncodable: "a value cannot be encoded; correct the value, and take the changeset again"
    }
  }
}

extension ZDCSyncableError: CustomStringConvertible {
  /// What failed and what to do about it. It holds nothing of the value, so it may be logged.
  public var description: String { code.explanation }
}
