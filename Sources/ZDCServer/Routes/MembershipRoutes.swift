internal import Hummingbird
internal import ZDCProtocol

/// The zones of other users that a user follows.
enum MembershipRoutes {
  static func accept(_ call: Call) async throws -> Response {
    let user = try call.user
    let zone = try call.zone()
    if let known = try await call.read({ try Memberships.known(zone, of: user, in: $0) }) { return try .json(known) }
    let core = call.core
    try core.takeAcceptance(of: user)
    let (limit, now) = (core.configuration.bounds.memberships, call.now)
    let status = try await call.write([.zone(zone), .account(user)]) { tx in
      let status = try Memberships.accept(zone, by: user, limit: limit, now: now, in: tx)
      let notice = MembershipNotice(user: user, zone: zone, status: status)
      try core.coordination.announce(.membership(notice), in: tx)
      return status
    }
    return try .json(status)
  }

  static func end(_ call: Call) async throws -> Response {
    let user = try call.user
    let zone = try call.zone()
    let core = call.core
    let isKnown = try await call.read { reader in
      try reader.zone(zone).map { try reader.membership(of: user, in: $0.key) != nil } ?? false
    }
    guard isKnown else { return .noContent }
    try await call.write([.zone(zone), .account(user)]) { tx in
      try Memberships.end(zone, of: user, in: tx)
      let notice = MembershipNotice(user: user, zone: zone, status: nil)
      try core.coordination.announce(.membership(notice), in: tx)
    }
    return .noContent
  }
}
