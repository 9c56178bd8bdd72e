package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// Caches zones' decoded access lists and keys by their stored bytes. They seldom change, and every transaction reads them.
package final class ZoneMemory: Sendable {
  private struct State {
    var lists: [ZoneID: (bytes: [UInt8], acl: ZoneACL)] = [:]
    var keys: [ZoneID: (sealed: [UInt8], key: NodeKey)] = [:]
  }

  private let state = Locked(State())

  package func acl(of zone: ZoneID, _ bytes: [UInt8], _ decode: ([UInt8]) throws -> ZoneACL) rethrows -> ZoneACL {
    if let known = state.withLock({ $0.lists[zone] }), known.bytes == bytes { return known.acl }
    let acl = try decode(bytes)
    state.withLock { $0.lists[zone] = (bytes, acl) }
    return acl
  }

  package func key(of zone: ZoneID, _ sealed: [UInt8], _ open: ([UInt8]) throws -> NodeKey?) rethrows -> NodeKey? {
    if let known = state.withLock({ $0.keys[zone] }), known.sealed == sealed { return known.key }
    guard let key = try open(sealed) else { return nil }
    state.withLock { $0.keys[zone] = (sealed, key) }
    return key
  }

  /// Returns the existing sealed form of an unchanged key, so that the cache recognizes it on the next read.
  package func sealed(_ key: NodeKey, of zone: ZoneID) -> [UInt8]? {
    guard let known = state.withLock({ $0.keys[zone] }), known.key == key else { return nil }
    return known.sealed
  }
}
