internal import ZDCClientAPI
package import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTransfers

extension ZDCAttempt {
  /// Returns the outcome of an attempt that failed with an error, or nil if it does not count as an attempt, such as a
  /// cancelled task.
  ///
  /// - Parameter other: The outcome for errors that can only come from the app.
  package static func outcome(of error: any Error, orElse other: Outcome) -> (outcome: Outcome, code: String?)? {
    switch DelegateError.unwrap(error) {
    case is CancellationError: nil
    case let error as TransportError: (.noAnswer, error.code.rawValue)
    case let error as ServerError where error.code == .quotaExceeded: (.overQuota, error.code.rawValue)
    case let error as ServerError: (.serverSaid, error.security?.rawValue ?? error.code.rawValue)
    case let error as ZDCSecurityError: (.serverSaid, error.code.rawValue)
    case CryptoFailure.sourceChanged: (.sourceChanged, nil)
    case let error as ZDCError where error.code == .noDataFromApp: (other, nil)
    case let error: (other, "\(type(of: error))")
    }
  }
}

extension ZDCReadWriteTransaction {
  /// Records the outcome of an attempt.
  package func record(_ error: any Error, orElse other: ZDCAttempt.Outcome, of operations: [Int64]) throws {
    guard let (outcome, code) = ZDCAttempt.outcome(of: error, orElse: other) else { return }
    try attempts.record(outcome, code: code, of: operations)
  }
}
