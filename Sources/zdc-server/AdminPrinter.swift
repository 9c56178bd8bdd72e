import Foundation
import ZDCProtocol
import ZDCServer

/// Prints accounts, sessions and invites.
struct AdminPrinter {
  let isJSON: Bool

  /// An account in a list.
  func showLine(_ user: AdminUser) throws {
    if isJSON { return try printJSON(user) }
    let quota = user.quotaBytes == 0 ? "" : " of \(Self.size(user.quotaBytes))"
    print("\(user.userID.text)  \(state(user))  \(user.liveNodes) nodes  \(Self.size(user.contentBytes))\(quota)")
  }

  func show(_ user: AdminUser) throws {
    if isJSON { return try printJSON(user) }
    let quota = user.quotaBytes == 0 ? "unlimited" : Self.size(user.quotaBytes)
    let fields = [
      ("user", user.userID.text), ("state", state(user)), ("created", Self.date(user.createdMs)),
      ("quota", user.hasOwnQuota ? "\(quota), set for this account" : quota),
      ("content", Self.size(user.contentBytes)), ("uploads", Self.size(user.uploadBytes)),
      ("records", Self.size(user.recordBytes)), ("commits and lists", Self.size(user.logBytes)),
      ("nodes", "\(user.liveNodes)"), ("devices", "\(user.devices)"), ("sessions", "\(user.sessions)"),
    ]
    for (name, value) in fields { print(name.padding(toLength: 20, withPad: " ", startingAt: 0) + value) }
  }

  func show(_ session: AdminSession) throws {
    if isJSON { return try printJSON(session) }
    print("\(session.deviceID.text)  from \(Self.date(session.createdMs)) to \(Self.date(session.expiresMs))")
  }

  func show(_ invite: AdminInvites.Invite) throws {
    if isJSON { return try printJSON(invite) }
    print("\(invite.code)  \(invite.isUsed ? "used" : "free")")
  }

  private func state(_ user: AdminUser) -> String {
    if let ms = user.closedMs { return "closed \(Self.date(ms))" }
    if let ms = user.suspendedMs { return "suspended \(Self.date(ms))" }
    return "active"
  }

  private func printJSON(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    print(String(decoding: try encoder.encode(value), as: UTF8.self))
  }

  private static func date(_ ms: UInt64) -> String {
    Date(timeIntervalSince1970: Double(ms) / 1_000).formatted(.iso8601)
  }

  private static func size(_ bytes: UInt64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
    var (value, unit) = (Double(bytes), 0)
    while value >= 1_000, unit < units.count - 1 { (value, unit) = (value / 1_000, unit + 1) }
    return unit == 0 ? "\(bytes) B" : "\((value * 10).rounded() / 10) \(units[unit])"
  }
}
