/// An incorrect test setup, or an unexpected state of the test's world at its end.
public struct TestFailure: Error, Sendable, CustomStringConvertible {
  /// What failed.
  public let description: String

  /// Creates a failure.
  public init(_ description: String) {
    self.description = description
  }
}
