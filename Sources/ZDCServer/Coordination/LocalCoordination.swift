internal import Synchronization
package import ZDCProtocol

/// The coordination of a single-process server: all state is in memory and ends with the process.
package final class LocalCoordination: ServerCoordination {
  package let challengeKey = Bytes32<LookupRole>.random().bytes
  let turns: ZoneTurns
  private let claims = BlobClaims()
  private let nonces = Mutex(UsedNonces())
  private let links = Mutex(DeviceLinks())
  package let linkWaiters = LinkWaiters()
  private let listener = Mutex<(@Sendable (Announcement) -> Void)?>(nil)

  package init(clock: ServerClock, bounds: Configuration.Bounds) {
    turns = ZoneTurns(clock: clock, holdMs: bounds.commitHoldMs)
  }

  package func listen(_ receive: @escaping @Sendable (Announcement) -> Void) { listener.withLock { $0 = receive } }

  package func announce(_ announcement: Announcement, in transaction: any MetadataTransaction) {
    transaction.afterCommit { [self] in listener.withLock(\.self)?(announcement) }
  }

  package var isCurrent: Bool { true }
  package var isShared: Bool { false }
  package var processes: Int { 1 }

  package func nowMs(_ own: ServerClock) -> UInt64 { own.nowMs() }

  package func use(nonce: [UInt8], expiresMs: UInt64, now: UInt64) -> Bool {
    nonces.withLock { $0.use(nonce, expiresMs: expiresMs, now: now) }
  }

  package func offer(_ offer: [UInt8], as id: DeviceLinkID, from party: String, now: UInt64) throws {
    try links.withLock { try $0.offer(offer, as: id, from: party, now: now) }
  }

  package func deviceLink(_ id: DeviceLinkID, now: UInt64) -> DeviceLinkRow? {
    links.withLock { $0.link(id, now: now) }
  }

  package func answer(_ id: DeviceLinkID, with sealed: [UInt8], now: UInt64) throws {
    try links.withLock { try $0.answer(id, with: sealed, now: now) }
    linkWaiters.wake(id)
  }

  package func reveal(_ nonce: DeviceLinkNonce, of id: DeviceLinkID, now: UInt64) throws {
    try links.withLock { try $0.reveal(nonce, of: id, now: now) }
    linkWaiters.wake(id)
  }

  package func enter(_ zones: [ZoneID], as writer: ZoneWriter, bytes: Int) async throws {
    try await turns.enter(zones, as: writer, bytes: bytes)
  }

  package func ended(_ end: ZoneTurnEnd, in zones: [ZoneID], of writer: ZoneWriter) {
    turns.ended(end, in: zones, of: writer)
  }

  package func isBusy(_ zone: ZoneID) -> Bool { turns.isBusy(zone) }

  package func claim(part: Int, of blob: BlobID) -> Bool { claims.begin(part: part, of: blob) }
  package func release(part: Int, of blob: BlobID) { claims.end(part: part, of: blob) }
  package func claimRemoval(of blob: BlobID) -> Bool { claims.beginRemoval(of: blob) }
  package func releaseRemoval(of blob: BlobID) { claims.endRemoval(of: blob) }

  package func claimUpkeep() -> Bool { true }

  package func close() {
    turns.close()
    linkWaiters.close()
  }

  package func end() {}
}
