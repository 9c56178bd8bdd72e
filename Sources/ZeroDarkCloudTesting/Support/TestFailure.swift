/// An incorrect test setup, or an unexpected state of the test's world at its end.
public struct TestFailure: Error, Sendable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}
