package import ZDCProtocol

/// An account as its server's operator sees it: no names, no content.
package struct AdminUser: Codable, Sendable, Hashable {
  package var userID: UserID
  package var createdMs: UInt64
  package var closedMs: UInt64?
  package var suspendedMs: UInt64?
  /// The quota of this account in bytes, 0 for none.
  package var quotaBytes: UInt64
  /// Whether the operator has set it for this account.
  package var hasOwnQuota: Bool
  package var contentBytes: UInt64
  package var uploadBytes: UInt64
  package var recordBytes: UInt64
  package var logBytes: UInt64
  package var liveNodes: UInt64
  package var devices: Int
  package var sessions: Int
}

package struct AdminUserPage: Codable, Sendable, Hashable {
  package var users: [AdminUser]
  /// The account after which the next page begins; nil on the last page.
  package var next: UserID?
}

package struct AdminSession: Codable, Sendable, Hashable {
  package var deviceID: DeviceID
  package var createdMs: UInt64
  package var expiresMs: UInt64
}

package struct AdminSessions: Codable, Sendable, Hashable {
  package var sessions: [AdminSession]
}

package struct AdminQuota: Codable, Sendable, Hashable {
  /// 0 for no limit.
  package var bytes: UInt64

  package init(bytes: UInt64) { self.bytes = bytes }
}

package struct AdminInvites: Codable, Sendable, Hashable {
  package struct Invite: Codable, Sendable, Hashable {
    package var code: String
    package var isUsed: Bool
  }

  package var invites: [Invite]
}
