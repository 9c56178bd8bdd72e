/// A test is set up wrongly, or its world is not as it should be at the end.
public struct TestFailure: Error, Sendable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}
