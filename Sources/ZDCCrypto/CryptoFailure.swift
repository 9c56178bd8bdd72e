/// What goes wrong with local secrets and local input. What arrives from others fails with `ZDCSecurityError`.
public enum CryptoFailure: Error, Sendable, Hashable {
  /// Wrong key, wrong context or altered bytes; which of them is not told.
  case authenticationFailure
  /// Bytes that should be a local key or a sealed local value have another form.
  case malformed
  /// A source gave fewer or more bytes than it announced: take a new snapshot and begin again.
  case sourceChanged
  /// An argument is outside its range; the caller can prevent it.
  case invalidParameter
  /// The platform's cryptography refused an operation that cannot fail.
  case platformFailure
}

extension CryptoFailure: CustomStringConvertible {
  public var description: String {
    switch self {
    case .authenticationFailure: "authentication failure"
    case .malformed: "malformed local secret"
    case .sourceChanged: "the source changed while it was read"
    case .invalidParameter: "invalid parameter"
    case .platformFailure: "the platform's cryptography failed"
    }
  }
}
