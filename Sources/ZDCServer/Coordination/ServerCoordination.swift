package import ZDCProtocol

/// What the processes of a server settle among each other and need not keep: news, used challenges, turns in busy zones,
/// and claims on uploads. ``LocalCoordination`` is the one of a single process.
///
/// Limits of calls, connections and bytes are not part of it: each process has its own share of them.
package protocol ServerCoordination: Sendable {
  // News
  /// Passes on what every process announces, this one included, the commits of each zone in order. Called once, before
  /// the server listens; `receive` must be quick.
  func listen(_ receive: @escaping @Sendable (Announcement) -> Void)
  /// Returns without waiting for anyone. In this process the announcement has been received when it returns.
  func announce(_ announcement: Announcement)

  // Challenges
  /// The secret under which all processes make login challenges.
  var challengeKey: [UInt8] { get }
  /// Marks a challenge as used; false if it was before.
  func use(nonce: [UInt8], expiresMs: UInt64, now: UInt64) async throws -> Bool

  // Turns
  /// Returns when the device may commit in these zones.
  ///
  /// - Parameter bytes: what the request keeps in memory while it waits.
  /// - Throws: `zoneBusy`; `shuttingDown`.
  func enter(_ zones: [ZoneID], as writer: ZoneWriter, bytes: Int) async throws
  /// What came of a commit for which ``enter(_:as:bytes:)`` was called.
  func ended(_ end: ZoneTurnEnd, in zones: [ZoneID], of writer: ZoneWriter) async
  /// Whether a device that comes now may have to wait.
  func isBusy(_ zone: ZoneID) async -> Bool

  // Uploads
  /// Claims a part of an upload for one request; false while another has it, or while the upload is being removed.
  func claim(part: Int, of blob: BlobID) async -> Bool
  func release(part: Int, of blob: BlobID) async
  /// Claims a whole upload to remove it; false while a part has a claim.
  func claimRemoval(of blob: BlobID) async -> Bool
  func releaseRemoval(of blob: BlobID) async

  /// No request is held from now on.
  func close()
}

/// News for all processes of a server.
package enum Announcement: Sendable {
  /// A zone has a new head.
  case head(HeadNotice)
  /// These sessions, given by the hashes of their tokens, have ended.
  case sessionsEnded([[UInt8]])
  /// The device may no longer log in, and its sessions have ended.
  case deviceRemoved(DeviceID, of: UserID)
  /// So have all devices but one.
  case devicesRemoved(except: DeviceID, of: UserID)
}

/// A device that commits.
package struct ZoneWriter: Hashable, Sendable {
  package var user: UserID
  package var device: DeviceID

  package init(user: UserID, device: DeviceID) {
    self.user = user
    self.device = device
  }
}

package enum ZoneTurnEnd: Sendable, Hashable {
  case committed
  /// Another commit came first.
  case lost
  /// It was refused, or came too late in another zone.
  case failed
}
