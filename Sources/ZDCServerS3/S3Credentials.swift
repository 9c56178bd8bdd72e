/// The key that signs requests. Its description never has the secret.
package struct S3Credentials: Sendable, CustomStringConvertible, CustomReflectable {
  package var keyID: String
  package var secret: String
  /// The token of temporary credentials.
  package var sessionToken: String?

  package init(keyID: String, secret: String, sessionToken: String? = nil) {
    self.keyID = keyID
    self.secret = secret
    self.sessionToken = sessionToken
  }

  package var description: String { "key \(keyID)" }
  package var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Reads `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
  ///
  /// - Throws: ``S3OpenError`` if a key is missing.
  package init(environment: [String: String]) throws {
    try self.init(environment, source: "the environment")
  }

  /// Reads lines `NAME=VALUE` with the names of the environment variables. Empty lines and those that begin with `#`
  /// are ignored, and so is `export` before a name.
  ///
  /// - Throws: ``S3OpenError`` if a key is missing.
  package init(file text: String) throws {
    var values: [String: String] = [:]
    for line in text.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
      let parts = line.split(separator: "=", maxSplits: 1)
      guard parts.count == 2 else { continue }
      let name = parts[0].split(separator: " ").last.map(String.init) ?? ""
      values[name] = parts[1].split(separator: " ").joined().trimmingQuotes
    }
    try self.init(values, source: "the credentials file")
  }

  private init(_ values: [String: String], source: String) throws {
    guard let id = values["AWS_ACCESS_KEY_ID"], let secret = values["AWS_SECRET_ACCESS_KEY"], !id.isEmpty,
      !secret.isEmpty
    else { throw S3OpenError(.noCredentials, "\(source) lacks AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY") }
    let token = values["AWS_SESSION_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
    self.init(keyID: id, secret: secret, sessionToken: token)
  }
}

extension String {
  /// The text without one pair of quotes around it.
  fileprivate var trimmingQuotes: String {
    for quote in ["\"", "'"] where count >= 2 && hasPrefix(quote) && hasSuffix(quote) {
      return String(dropFirst().dropLast())
    }
    return self
  }
}
