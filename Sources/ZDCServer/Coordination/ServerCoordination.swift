package import ZDCProtocol

/// State that all processes of a server share but do not store for good: announcements, used challenges, turns in busy
/// zones, and claims on uploads. A single-process server uses ``LocalCoordination``.
///
/// It does not count calls: each process limits its own share of them. Connections and memory are those of a process.
package protocol ServerCoordination: Sendable {
  // Announcements
  /// Calls `receive` with the announcements of every process, this one included, each zone's commits and each
  /// user's memberships in order.
  ///
  /// The server calls this once, before it accepts connections. `receive` must be quick.
  func listen(_ receive: @escaping @Sendable (Announcement) -> Void)
  /// Announces a change to all processes once the transaction is durable. A transaction that fails is not announced.
  ///
  /// This process has received the end of a session before the store's `write` returns.
  func announce(_ announcement: Announcement, in transaction: any MetadataTransaction) throws
  /// Whether this process has received all announcements up to about a second ago. If not, what it remembers may be
  /// outdated, and it has to read it again.
  var isCurrent: Bool { get }

  // Processes
  /// Whether other processes may serve the same stores.
  var isShared: Bool { get }
  /// The number of processes that serve the same stores, this one included, as of about a second ago.
  var processes: Int { get }
  /// Returns the time of all processes, in milliseconds since 1970. What one of them dates, another one compares with its
  /// own time: sessions, challenges, the age of what is removed.
  ///
  /// - Parameter own: the clock of this process's machine.
  func nowMs(_ own: ServerClock) -> UInt64

  // Challenges
  /// The secret that all processes use to make login challenges.
  var challengeKey: [UInt8] { get }
  /// Marks a challenge as used; returns false if it was used before.
  func use(nonce: [UInt8], expiresMs: UInt64, now: UInt64) async throws -> Bool

  // Device links
  /// Holds the offer of a device that asks to be linked to an account.
  ///
  /// - Parameter party: the device's address.
  /// - Throws: `conflict` if the ID is taken; `tooManyRequests` if the address, or all together, have too many.
  func offer(_ offer: [UInt8], as id: DeviceLinkID, from party: String, now: UInt64) async throws
  /// Returns the offer, and the answer and the nonce so far; nil for an unknown or expired link.
  func deviceLink(_ id: DeviceLinkID, now: UInt64) async throws -> DeviceLinkRow?
  /// The requests of this process that wait for a link. They are woken when any process receives an answer or a nonce.
  var linkWaiters: LinkWaiters { get }
  /// Holds the answer to a link until it expires.
  ///
  /// - Throws: `notFound`; `conflict` if it has another answer.
  func answer(_ id: DeviceLinkID, with sealed: [UInt8], now: UInt64) async throws
  /// Holds the nonce of a link until it expires.
  ///
  /// - Throws: `notFound`; `conflict` if the offer commits to another one.
  func reveal(_ nonce: DeviceLinkNonce, of id: DeviceLinkID, now: UInt64) async throws

  // Turns
  /// Waits until the device may commit in these zones.
  ///
  /// - Parameter bytes: the memory that the request holds while it waits.
  /// - Throws: `zoneBusy`; `shuttingDown`.
  func enter(_ zones: [ZoneID], as writer: ZoneWriter, bytes: Int) async throws
  /// Reports the outcome of a commit that ``enter(_:as:bytes:)`` admitted.
  func ended(_ end: ZoneTurnEnd, in zones: [ZoneID], of writer: ZoneWriter) async
  /// Returns whether a device that asks now may have to wait.
  func isBusy(_ zone: ZoneID) async -> Bool

  // Uploads
  /// Claims a part of an upload for one request; returns false while another request has it or the upload is being
  /// removed.
  func claim(part: Int, of blob: BlobID) async -> Bool
  func release(part: Int, of blob: BlobID) async
  /// Claims a whole upload in order to remove it; returns false while a part is claimed.
  func claimRemoval(of blob: BlobID) async -> Bool
  func releaseRemoval(of blob: BlobID) async

  // Upkeep
  /// Claims the removal of old data until this process ends; returns false while another process has it.
  func claimUpkeep() async -> Bool

  /// Stops holding requests.
  func close()
  /// Gives up what this process has. The server calls this last, when no request runs.
  func end() async
}

/// A change that all processes of a server must receive.
package enum Announcement: Sendable, Codable {
  /// A zone has a new head.
  case head(HeadNotice)
  /// A user follows a zone, or no longer does.
  case membership(MembershipNotice)
  /// A user has a new message.
  case message(MessageNotice)
  /// These sessions, given by the hashes of their tokens, have ended.
  case sessionsEnded([[UInt8]])
  /// The device may no longer log in, and its sessions have ended.
  case deviceRemoved(DeviceID, of: UserID)
  /// All of the user's sessions have ended, except those of this device.
  case allSessionsEnded(except: DeviceID?, of: UserID)
  /// Announcements may have been lost.
  case unknown
}

/// A device that commits.
package struct ZoneWriter: Hashable, Sendable, Codable {
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
  /// The commit was refused, or came too late in another zone.
  case failed
}
