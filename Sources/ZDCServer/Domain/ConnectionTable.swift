internal import Synchronization

/// The number of connections per client address.
final class ConnectionTable: Sendable {
  private let limit: Int
  private let exempt: TrustedProxies
  private let counts = Mutex<[String: Int]>([:])

  init(perAddress limit: Int, exempt: TrustedProxies) {
    self.limit = limit
    self.exempt = exempt
  }

  /// Counts a connection from this address.
  ///
  /// - Returns: the argument for ``close(_:)``; nil if the address already has its share.
  func open(_ address: IPAddress?) -> String? {
    let party = address?.party ?? ""
    return counts.withLock { counts in
      let count = counts[party, default: 0]
      guard count < limit || isExempt(address) else { return nil }
      counts[party] = count + 1
      return party
    }
  }

  /// The clients behind a proxy share its address; so do the programs on this machine.
  private func isExempt(_ address: IPAddress?) -> Bool {
    guard let address else { return true }
    return address.isLoopback || exempt.contains(address)
  }

  func close(_ party: String) {
    counts.withLock { counts in
      let count = counts[party, default: 0] - 1
      counts[party] = count > 0 ? count : nil
    }
  }

  var count: Int { counts.withLock { $0.values.reduce(0, +) } }
}
