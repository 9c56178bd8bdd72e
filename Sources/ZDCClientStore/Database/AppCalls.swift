package import ZDCProtocol

/// Wraps an error that the app threw, to keep it apart from the framework's errors until the caller receives it.
package struct DelegateError: Error {
  package let underlying: any Error
  package var call: ZDCDelegateFailure.Call
  package var node: NodeID

  package init(underlying: any Error, call: ZDCDelegateFailure.Call, node: NodeID) {
    self.underlying = underlying
    self.call = call
    self.node = node
  }

  /// Returns the app's original error, which callers of the framework receive.
  package static func unwrap(_ error: any Error) -> any Error {
    (error as? DelegateError)?.underlying ?? error
  }
}

/// Controls how one transaction calls the app.
///
/// The first try has no savepoints, because they cost more than most callbacks. If a callback throws, everything rolls
/// back and runs again, with a savepoint around each part whose outcome depends on the app.
package struct AppCalls {
  package var isolates = false
  /// The error that ended the first try. The second try does not repeat that call.
  package var known: DelegateError?
  /// The first error caught by a savepoint.
  package var failure: DelegateError?

  package mutating func takeKnown(_ call: ZDCDelegateFailure.Call, _ node: NodeID) -> DelegateError? {
    guard let error = known, error.call == call, error.node == node else { return nil }
    known = nil
    return error
  }
}
