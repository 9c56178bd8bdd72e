/// An error with local secrets or local input. Input from others fails with `ZDCSecurityError`.
package enum CryptoFailure: Error, Sendable, Hashable {
  /// Wrong key, wrong context or altered bytes. The error does not reveal which.
  case authenticationFailure
  /// Bytes that should be a local key or a sealed local value have a wrong format.
  case malformed
  /// A source gave fewer or more bytes than announced. Take a new snapshot and start over.
  case sourceChanged
  /// An argument is out of range. This is avoidable by the caller.
  case invalidParameter
  /// The platform's cryptography failed an operation that cannot fail.
  case platformFailure
}

extension CryptoFailure: CustomStringConvertible {
  package var description: String {
    switch self {
    case .authenticationFailure: "authentication failure"
    case .malformed: "malformed local secret"
    case .sourceChanged: "the source changed while it was read"
    case .invalidParameter: "invalid parameter"
    case .platformFailure: "the platform's cryptography failed"
    }
  }
}
