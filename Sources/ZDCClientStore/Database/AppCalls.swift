package import ZDCProtocol

/// An error that the app threw, kept apart from the framework's errors until the caller gets it.
package struct DelegateError: Error {
  package let underlying: any Error
  package var call: ZDCDelegateFailure.Call
  package var node: NodeID

  package init(underlying: any Error, call: ZDCDelegateFailure.Call, node: NodeID) {
    self.underlying = underlying
    self.call = call
    self.node = node
  }

  /// The app's error itself, which callers of the framework get.
  package static func unwrap(_ error: any Error) -> any Error {
    (error as? DelegateError)?.underlying ?? error
  }
}

/// How the app is called in one transaction.
///
/// At first as if it never threw: savepoints cost more than most callbacks. If it does throw, all is rolled back and
/// done once more, with a savepoint around each part that stands or falls with what the app says of it.
package struct AppCalls {
  package var isolates = false
  /// What ended the first try; that call is not made again.
  package var known: DelegateError?
  /// The first error that a savepoint has caught.
  package var failure: DelegateError?

  package mutating func takeKnown(_ call: ZDCDelegateFailure.Call, _ node: NodeID) -> DelegateError? {
    guard let error = known, error.call == call, error.node == node else { return nil }
    known = nil
    return error
  }
}
