/// A bucket and the server that has it: `s3://BUCKET@HOST[:PORT][/PREFIX]`, or `s3+http://` for a server on this
/// machine. With prefixes, several servers can share a bucket.
package struct S3Address: Sendable, Hashable, CustomStringConvertible {
  package var bucket: String
  /// Host and port as in the header `Host`.
  package var authority: String
  package var isSecure: Bool
  /// Begins all keys: empty, or with a slash at its end.
  package var prefix: String

  /// - Throws: ``S3OpenError`` with a text about the form of the address.
  package init(_ text: String) throws {
    let isSecure = text.hasPrefix("s3://")
    guard isSecure || text.hasPrefix("s3+http://") else { throw Self.malformed }
    let rest = text.dropFirst(isSecure ? 5 : 10)
    let place = rest.prefix { $0 != "/" }
    let folders = rest.dropFirst(place.count).split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    let parts = place.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, Self.isBucket(parts[0]), Self.isAuthority(parts[1]), folders.allSatisfy(Self.isFolder)
    else { throw Self.malformed }
    bucket = String(parts[0])
    authority = String(parts[1])
    prefix = folders.map { $0 + "/" }.joined()
    self.isSecure = isSecure
    // Otherwise everyone on the way could read which blobs are used, and replay a request within its 15 minutes.
    guard isSecure || isLoopback else {
      throw S3OpenError(.address, "s3+http:// is for a server on this machine; use s3:// for \(authority)")
    }
  }

  package var description: String {
    "\(isSecure ? "s3" : "s3+http")://\(bucket)@\(authority)\(prefix.isEmpty ? "" : "/\(prefix.dropLast())")"
  }

  var origin: String { "\(isSecure ? "https" : "http")://\(authority)" }

  private var isLoopback: Bool {
    authority == "[::1]" || authority.hasPrefix("[::1]:")
      || ["127.0.0.1", "localhost"].contains(authority.prefix { $0 != ":" })
  }

  private static let malformed = S3OpenError(
    .address,
    "an address of blobs is s3://BUCKET@HOST[:PORT][/PREFIX], such as s3://zdc-blobs@s3.eu-central-1.amazonaws.com")

  private static func isBucket(_ text: Substring) -> Bool {
    (3...63).contains(text.count)
      && text.utf8.allSatisfy { $0.isLowercaseLetterOrDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
  }

  private static func isFolder(_ text: Substring) -> Bool {
    !text.isEmpty && !text.hasPrefix(".")
      && text.lowercased().utf8.allSatisfy { $0.isLowercaseLetterOrDigit || "-._".utf8.contains($0) }
  }

  private static func isAuthority(_ text: Substring) -> Bool {
    !text.isEmpty && !text.hasPrefix(":")
      && text.lowercased().utf8.allSatisfy { $0.isLowercaseLetterOrDigit || "-._:[]".utf8.contains($0) }
  }
}

extension UInt8 {
  fileprivate var isLowercaseLetterOrDigit: Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
  }
}
