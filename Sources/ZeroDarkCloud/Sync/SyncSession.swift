internal import Foundation
internal import Logging
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// What push and pull of one local user share: who he is, his keys, the database, the server, the app.
struct SyncSession: Sendable {
  let localUser: Int64
  let localUserID: String
  let appTreeID: String
  let database: ZDCDatabaseConnection
  let api: ServerAPI
  /// Replaced when the identity chain has gone on.
  let currentKeys: Locked<UserKeys>
  /// Compares the identity chain with the pinned one; nil if nothing is new in it.
  let refreshIdentity: @Sendable () async throws -> UserKeys?
  let delegate: @Sendable () -> any ZeroDarkCloudDelegate
  let now: @Sendable () -> UInt64
  let time: EngineClock
  let logger: Logger
  let events: SyncEvents
  let activity: SyncActivity
  let progress: UploadProgress
  /// Frozen zones that were tried again since the launch.
  let retriedFrozen: Locked<Set<Int64>>

  var keys: UserKeys { currentKeys.withLock { $0 } }
  var user: UserID { keys.identity.userID }
}

extension SyncSession {
  /// The API's value for a row.
  func node(_ row: NodeRow, in transaction: ZDCReadTransaction) throws -> ZDCNode {
    try transaction.zdcNode(row)
  }

  /// Where the app sees the row.
  func path(_ row: NodeRow, in transaction: ZDCReadTransaction) throws -> ZDCTreesystemPath {
    try transaction.zdcPath(row)
  }
}
