import Testing
import ZDCProtocol

/// Returns the code with which `body` refuses, or nil if it accepts. An untyped error fails the test: `body` may throw
/// nothing else.
func refusal(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) -> ZDCSecurityError.Code? {
  do {
    try body()
    return nil
  } catch let error as ZDCSecurityError {
    return error.code
  } catch {
    Issue.record("not a typed error: \(error)", sourceLocation: sourceLocation)
    return nil
  }
}
