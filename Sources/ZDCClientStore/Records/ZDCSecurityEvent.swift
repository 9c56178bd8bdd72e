public import Foundation
public import ZDCProtocol

/// Evidence of something impossible that a server presented, as recorded when it was detected (PROTOCOL 3.13).
///
/// A member of a zone can report one, too: each message names the last commits that its sender has verified in the zones
/// that sender and recipient share. If a `zoneForkDetected` or `zoneRollback` names a user and its zone is not frozen,
/// that member and the server contradict each other, and either may be wrong.
///
/// An event is history. For the present state, see ``ZDCSyncManager/frozenZones(localUserID:)`` and
/// ``ZDCNodeExplanation/quarantine``.
///
/// ```swift
/// for event in try await session.syncManager.securityEvents(localUserID: user.uuid) {
///   print(event.error)  // the code and IDs; holds no names
/// }
/// ```
public struct ZDCSecurityEvent: Sendable, Hashable {
  /// The impossible answer, as a code and the IDs that it concerns.
  public var error: ZDCSecurityError
  /// When it was last found out.
  public var date: Date
  /// How often the same was found out.
  public var times = 1
  /// The time at which it was detected first.
  public var firstDate: Date

  package init(error: ZDCSecurityError, date: Date, times: Int = 1, firstDate: Date) {
    self.error = error
    self.date = date
    self.times = times
    self.firstDate = firstDate
  }

  /// How many different ones are kept for a local user.
  package static var limit: Int { 1_000 }
}
