/// A request to the object store that failed: the store's own answer, or no answer.
struct S3Failure: Error, CustomStringConvertible {
  /// The HTTP status; nil if there was no answer.
  var status: Int?
  /// The store's code, such as `NoSuchKey`, or what happened to the connection.
  var code: String
  /// The kind of request, without its key.
  var operation: String

  var description: String { "\(operation): \(code)\(status.map { " (\($0))" } ?? "")" }

  var isMissing: Bool { status == 404 && ["NoSuchKey", "NotFound", ""].contains(code) }
  var isMissingUpload: Bool { status == 404 && code == "NoSuchUpload" }
  var isFull: Bool { status == 507 || code == "QuotaExceeded" }

  /// Whether the same request may succeed a little later. The store may have acted on it all the same.
  var isTransient: Bool {
    guard let status else { return true }
    return [429, 500, 502, 503, 504].contains(status) || ["RequestTimeout", "OperationAborted"].contains(code)
  }
}

/// The reason why a server cannot use an object store.
package struct S3OpenError: Error, Sendable, CustomStringConvertible {
  package enum Reason: Sendable {
    case noCredentials
    /// The address is malformed, or not secure.
    case address
    /// The store does not accept the credentials.
    case refused
    case noBucket
    /// The store does not answer.
    case unavailable
    /// The blobs there belong to another server.
    case notOurs
  }

  package let reason: Reason
  package let description: String

  package init(_ reason: Reason, _ description: String) {
    self.reason = reason
    self.description = description
  }
}
