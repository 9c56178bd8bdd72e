package import ZDCProtocol

/// State that all processes of a server share and none stores: announcements, used challenges, turns in busy zones, and
/// claims on uploads. A server that is a single process uses ``LocalCoordination``.
///
/// Limits on calls, connections and bytes are not part of it: each process has its own share of them.
package protocol ServerCoordination: Sendable {
  // Announcements
  /// Calls `receive` with the announcements of every process, this one included, the commits of each zone in order. The
  /// server calls this once, before it accepts connections; `receive` must be quick.
  func listen(_ receive: @escaping @Sendable (Announcement) -> Void)
  /// Returns without waiting for other processes. This process has received the announcement when it returns.
  func announce(_ announcement: Announcement)

  // Challenges
  /// The secret under which all processes make login challenges.
  var challengeKey: [UInt8] { get }
  /// Marks a challenge as used; false if it was used before.
  func use(nonce: [UInt8], expiresMs: UInt64, now: UInt64) async throws -> Bool

  // Turns
  /// Returns when the device may commit in these zones.
  ///
  /// - Parameter bytes: what the request keeps in memory while it waits.
  /// - Throws: `zoneBusy`; `shuttingDown`.
  func enter(_ zones: [ZoneID], as writer: ZoneWriter, bytes: Int) async throws
  /// Reports the outcome of a commit for which ``enter(_:as:bytes:)`` was called.
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

/// A change that all processes of a server must hear of.
package enum Announcement: Sendable {
  /// A zone has a new head.
  case head(HeadNotice)
  /// These sessions, given by the hashes of their tokens, have ended.
  case sessionsEnded([[UInt8]])
  /// The device may no longer log in, and its sessions have ended.
  case deviceRemoved(DeviceID, of: UserID)
  /// The same for all devices but one.
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
