internal import Foundation

/// The address of a server: scheme, host and port only.
///
/// Login signatures cover `origin`. It comes from this device's configuration, so a server in the middle gains nothing
/// by relaying challenges under another name.
package struct ServerAddress: Hashable, Sendable {
  /// `scheme://host[:port]`, lower case, without the scheme's default port.
  package let origin: String
  let isEncrypted: Bool

  /// Parses an address.
  ///
  /// - Throws: ``ZDCTransportError`` with `invalidAddress`, or `insecureAddress` for http to another machine.
  package init(_ text: String) throws(TransportError) {
    guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
      var host = parts.host?.lowercased(), !host.isEmpty, parts.user == nil, parts.password == nil,
      parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil,
      scheme == "https" || scheme == "http", (1...65_535).contains(parts.port ?? 1)
    else { throw TransportError(.invalidAddress) }
    if host.contains(":"), !host.hasPrefix("[") { host = "[\(host)]" }
    isEncrypted = scheme == "https"
    let defaultPort = isEncrypted ? 443 : 80
    let port = parts.port.flatMap { $0 == defaultPort ? nil : ":\($0)" } ?? ""
    origin = "\(scheme)://\(host)\(port)"
    guard isEncrypted || Self.isLoopback(host) else { throw TransportError(.insecureAddress, origin: origin) }
  }

  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "[::1]" { return true }
    let octets = host.split(separator: ".", omittingEmptySubsequences: false)
    return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0) != nil }
  }
}
