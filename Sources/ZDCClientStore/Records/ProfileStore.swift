internal import Foundation
package import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// A profile as an inbox's log has it.
package struct StoredProfile: Sendable, Hashable {
  package var user: UserID
  /// Counted by the user. A profile replaces one with a lower version.
  package var version: UInt64
  /// The device that has sent it: of the own profile, the one that sends it to other people.
  package var device: UInt64
  package var node: NodeID
  package var profile: UserProfile

  package init(user: UserID, version: UInt64, device: UInt64, node: NodeID, profile: UserProfile) {
    self.user = user
    self.version = version
    self.device = device
    self.node = node
    self.profile = profile
  }
}

/// The profiles of users, and to whom the own one was sent, inside one transaction.
package struct ProfileStore {
  package let db: Database
  private let sealer: TableSealer
  private let operations: OperationStore

  package init(_ transaction: ZDCReadTransaction) {
    (db, operations) = (transaction.database, transaction.operations)
    sealer = transaction.context.sealer.table("zdc_profile")
  }

  // MARK: Profiles

  package func profile(of user: UserID, localUser: Int64, tree: String) throws -> StoredProfile? {
    try fetch("userID = ? AND localUser = ? AND appTreeID = ?", [user.data, localUser, tree])
  }

  /// Returns the newest profile that any account of this device has of a user.
  package func profile(of user: UserID) throws -> StoredProfile? {
    try fetch("userID = ? ORDER BY version DESC, id LIMIT 1", [user.data])
  }

  private func fetch(_ condition: String, _ arguments: StatementArguments) throws -> StoredProfile? {
    let statement = try db.cachedStatement(
      sql: "SELECT userID, version, device, node, sealed FROM zdc_profile WHERE \(condition)")
    guard let row = try Row.fetchOne(statement, arguments: arguments) else { return nil }
    let user = try UserID(row, 0)
    let bytes = try sealer.open(try row.requiredBytes(4), row: user.bytes)
    return StoredProfile(
      user: user, version: row.unsigned(1) ?? 0, device: row.unsigned(2) ?? 0, node: try NodeID(row, 3),
      profile: try UserProfile(bytes))
  }

  package func set(_ stored: StoredProfile, localUser: Int64, tree: String) throws {
    let sealed = Data(try sealer.seal(stored.profile.bytes, row: stored.user.bytes))
    try db.execute(
      sql: """
        INSERT INTO zdc_profile (localUser, appTreeID, userID, version, device, node, sealed)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (userID, localUser, appTreeID) DO UPDATE SET version = excluded.version,
        device = excluded.device, node = excluded.node, sealed = excluded.sealed
        """,
      arguments: [
        localUser, tree, stored.user.data, stored.version.stored, stored.device.stored, stored.node.data, sealed,
      ])
  }

  // MARK: The own profile

  /// Returns the queued changes of the own profile: at most one for each inbox.
  package func queued(inbox zone: Int64) throws -> OperationRow? {
    try operations.fetchAll("WHERE zone = ? AND kind = 8 ORDER BY id DESC LIMIT 1", [zone]).first
  }

  /// Returns the profile that a local user has chosen and that the log does not have yet, of any app's tree.
  package func queued(localUser: Int64) throws -> UserProfile? {
    let condition = "WHERE kind = 8 AND zone IN (SELECT id FROM zdc_zone WHERE localUser = ?) ORDER BY id DESC LIMIT 1"
    return try operations.fetchAll(condition, [localUser]).first?.changeset.map { try UserProfile($0) }
  }

  // MARK: People

  package func sentVersion(to user: UserID, localUser: Int64, tree: String) throws -> UInt64 {
    let statement = try db.cachedStatement(
      sql: "SELECT profileVersion FROM zdc_message_peer WHERE localUser = ? AND appTreeID = ? AND userID = ?")
    return try Row.fetchOne(statement, arguments: [localUser, tree, user.data])?.unsigned(0) ?? 0
  }

  /// Returns the number of people to whom a version was sent, or for whom it is queued.
  package func count(ofVersion version: UInt64, localUser: Int64, tree: String) throws -> Int {
    let statement = try db.cachedStatement(
      sql: """
        SELECT COUNT(*) FROM zdc_message_peer WHERE localUser = ? AND appTreeID = ? AND profileVersion = ?
        """)
    return try Int.fetchOne(statement, arguments: [localUser, tree, version.stored]) ?? 0
  }

  /// Notes the version that a user gets. It does not make the user a known sender.
  package func setSent(_ version: UInt64, to user: UserID, localUser: Int64, tree: String) throws {
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_message_peer (localUser, appTreeID, userID, isKnown, profileVersion) VALUES (?, ?, ?, 0, ?)
        ON CONFLICT DO UPDATE SET profileVersion = excluded.profileVersion
        """)
    try statement.execute(arguments: [localUser, tree, user.data, version.stored])
  }

  /// Returns whether a delivery of the profile to a user is queued that will take the newest version when it is sealed.
  package func isDeliveryQueued(to user: UserID, outbox zone: Int64) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: """
        SELECT 1 FROM zdc_operation o WHERE o.zone = ? AND o.kind = 7 AND o.node IS NULL AND o.sealed IS NULL AND o.member = ?
        AND o.state = 0 AND NOT EXISTS (SELECT 1 FROM zdc_envelope WHERE operation = o.id) LIMIT 1
        """)
    return try Row.fetchOne(statement, arguments: [zone, user.data]) != nil
  }
}

extension ZDCReadTransaction {
  package var profiles: ProfileStore { ProfileStore(self) }

  /// Returns a user's profile as this device's user sees it: the own one as soon as it is queued.
  final func shownProfile(of user: UserID) throws -> UserProfile? {
    if let row = try localUsers.user(user), let queued = try profiles.queued(localUser: row.id) { return queued }
    return try profiles.profile(of: user)?.profile
  }
}
