#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address counts as IPv4.
package struct IPAddress: Sendable, Hashable {
  /// Four or sixteen bytes.
  package let bytes: [UInt8]

  private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]

  package init?(_ text: some StringProtocol) {
    // Without the name of an interface.
    let text = String(text.prefix { $0 != "%" })
    if let four = Self.parse(text, AF_INET, 4) {
      bytes = four
    } else if let sixteen = Self.parse(text, AF_INET6, 16) {
      bytes = sixteen.starts(with: Self.mappedPrefix) ? Array(sixteen[12...]) : sixteen
    } else {
      return nil
    }
  }

  private static func parse(_ text: String, _ family: Int32, _ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return inet_pton(family, text, &bytes) == 1 ? bytes : nil
  }

  package var isLoopback: Bool {
    bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
  }

  /// The key by which limits count clients: an IPv4 address, or the first 64 bits of an IPv6 address. A host usually
  /// has all addresses of such a network.
  package var party: String { bytes.prefix(bytes.count == 4 ? 4 : 8).map(String.init).joined(separator: ".") }
}

/// The proxies that may name the client's address in a header field.
package struct TrustedProxies: Sendable {
  private struct Network: Sendable {
    var bytes: [UInt8]
    var bits: Int

    func contains(_ address: IPAddress) -> Bool {
      guard address.bytes.count == bytes.count else { return false }
      return (0..<bits).allSatisfy { bit in
        (address.bytes[bit / 8] ^ bytes[bit / 8]) & (0x80 >> UInt8(bit % 8)) == 0
      }
    }
  }

  private var networks: [Network] = []

  package init() {}

  package var isEmpty: Bool { networks.isEmpty }

  /// - Parameter text: `ADDRESS` or `ADDRESS/BITS`.
  /// - Returns: false if it is neither; then nothing is added.
  package mutating func add(_ text: String) -> Bool {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, let address = IPAddress(parts[0]) else { return false }
    let all = address.bytes.count * 8
    guard let bits = parts.count == 1 ? all : Int(parts[1]), (0...all).contains(bits) else { return false }
    networks.append(Network(bytes: address.bytes, bits: bits))
    return true
  }

  package func contains(_ address: IPAddress) -> Bool { networks.contains { $0.contains(address) } }

  /// Returns the address of the client: the peer's, or the one that the nearest trusted proxies name.
  ///
  /// A client can send both header fields itself, and a proxy appends to only one of them. If the two fields name
  /// different clients, neither is used.
  ///
  /// - Parameters:
  ///   - forwarded: the values of `Forwarded` (RFC 7239).
  ///   - forwardedFor: the values of `X-Forwarded-For`.
  package func client(of peer: IPAddress, forwarded: [String], forwardedFor: [String]) -> IPAddress {
    guard contains(peer) else { return peer }
    let claims = [nearest(forwarded.flatMap(Self.forwardedAddresses)), nearest(forwardedFor.flatMap(Self.addresses))]
    let named = Set(claims.compactMap { $0 })
    guard named.count == 1, let client = named.first else { return peer }
    return client
  }

  /// Returns the last address that is not a trusted proxy's. An element that is not an address ends the search, because
  /// no trusted proxy wrote it.
  private func nearest(_ addresses: [IPAddress?]) -> IPAddress? {
    for address in addresses.reversed() {
      guard let address else { return nil }
      if !contains(address) { return address }
    }
    return nil
  }

  private static func addresses(_ field: String) -> [IPAddress?] {
    field.split(separator: ",").map { address($0.filter { $0 != " " }) }
  }

  private static func forwardedAddresses(_ field: String) -> [IPAddress?] {
    field.split(separator: ",").map { element in
      let pairs = element.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\"" } }
      let value = pairs.first { $0.lowercased().hasPrefix("for=") }
      return value.flatMap { address($0.dropFirst(4)) }
    }
  }

  /// Parses an address with or without brackets and port.
  private static func address(_ text: some StringProtocol) -> IPAddress? {
    if text.hasPrefix("[") { return IPAddress(text.dropFirst().prefix { $0 != "]" }) }
    if let address = IPAddress(text) { return address }
    return IPAddress(text.prefix { $0 != ":" })
  }
}
