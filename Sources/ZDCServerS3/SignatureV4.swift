internal import Crypto
internal import NIOCore
internal import ZDCProtocol

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// AWS Signature Version 4, with the signature in the `Authorization` header.
///
/// Every header that a request is given is signed, and the body always by its hash: this store has the bodies of its
/// requests in memory, so none of them goes unsigned.
struct SignatureV4: Sendable {
  var credentials: S3Credentials
  var region: String
  var service = "s3"

  /// The parts of a request that are signed.
  struct Message {
    var method: String
    /// The path before percent encoding, with its first slash.
    var path: String
    var query: [(name: String, value: String)] = []
    /// Includes `host`, `x-amz-date` and `x-amz-content-sha256`.
    var headers: [(name: String, value: String)]
    /// The body's SHA-256, in hexadecimal digits.
    var bodyHash: String
  }

  /// Returns the value of the header `Authorization`.
  ///
  /// - Parameter date: `yyyyMMdd'T'HHmmss'Z'`, the value of `x-amz-date`.
  func authorization(for message: Message, date: String) -> String {
    let scope = "\(date.prefix(8))/\(region)/\(service)/aws4_request"
    let canonical = Self.canonicalRequest(message)
    let text = "AWS4-HMAC-SHA256\n\(date)\n\(scope)\n\(Self.hash(of: ByteBuffer(string: canonical)))"
    let signature = HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: signingKey(day: date.prefix(8)))
    return """
      AWS4-HMAC-SHA256 Credential=\(credentials.keyID)/\(scope),\
      SignedHeaders=\(Self.signedNames(message.headers)),Signature=\(hexadecimal(signature))
      """
  }

  func signingKey(day: some StringProtocol) -> SymmetricKey {
    var key = SymmetricKey(data: Array("AWS4\(credentials.secret)".utf8))
    for step in [String(day), region, service, "aws4_request"] {
      key = SymmetricKey(data: HMAC<SHA256>.authenticationCode(for: Array(step.utf8), using: key))
    }
    return key
  }

  static func canonicalRequest(_ message: Message) -> String {
    let headers = sorted(message.headers).map { "\($0.name):\($0.value)\n" }.joined()
    return [
      message.method, encoded(message.path, keepingSlashes: true), canonicalQuery(message.query), headers,
      signedNames(message.headers), message.bodyHash,
    ].joined(separator: "\n")
  }

  /// Returns the query as it is signed and sent: encoded, then sorted.
  static func canonicalQuery(_ query: [(name: String, value: String)]) -> String {
    query.map { (encoded($0.name), encoded($0.value)) }.sorted { $0 < $1 }.map { "\($0)=\($1)" }.joined(separator: "&")
  }

  /// Percent-encodes all bytes except the unreserved characters of RFC 3986.
  static func encoded(_ text: String, keepingSlashes: Bool = false) -> String {
    var encoded = ""
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      case UInt8(ascii: "/") where keepingSlashes: encoded += "/"
      default: encoded += "%" + hexadecimal([byte]).uppercased()
      }
    }
    return encoded
  }

  static func hash(of bytes: ByteBuffer) -> String {
    var hash = SHA256()
    bytes.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
    return hexadecimal(hash.finalize())
  }

  /// The value of the header `Content-MD5`, which a deletion of several objects must have.
  static func md5(of bytes: ByteBuffer) -> String {
    let digest = bytes.withUnsafeReadableBytes { Insecure.MD5.hash(data: $0) }
    return Data(digest).base64EncodedString()
  }

  private static func signedNames(_ headers: [(name: String, value: String)]) -> String {
    sorted(headers).map(\.name).joined(separator: ";")
  }

  /// Names in lower case, values without spaces at their ends and with single ones inside.
  private static func sorted(_ headers: [(name: String, value: String)]) -> [(name: String, value: String)] {
    headers.map { ($0.name.lowercased(), $0.value.split(separator: " ").joined(separator: " ")) }
      .sorted { $0.0 < $1.0 }
  }
}
