public import Foundation
public import ZDCProtocol
public import ZDCTreesystem

/// A tree that is neither pulled nor pushed, because its server showed an impossible state. Local data stays readable
/// and changes are queued, but nothing else happens until the user decides.
///
/// ```swift
/// for zone in try await session.syncManager.frozenZones(localUserID: user.uuid) {
///   show(["\(zone.trunk) is not synced since \(zone.since)", zone.error.explanation])
/// }
/// ```
public struct ZDCFrozenZone: Sendable, Hashable {
  /// The zone that is frozen.
  public var zone: ZDCZoneID
  /// The trunk of the zone's tree.
  public var trunk: ZDCTreesystemTrunk
  /// The code of the security error that froze it.
  public var error: ZDCSecurityError.Code
  /// The time at which the error was detected.
  public var since: Date
  /// Whether a member's signature proves the error. Otherwise each launch tries again, and the tree is unfrozen once
  /// the server's log extends the state that this device had verified.
  public var isProven = false
}

/// A tree whose server gives answers that cannot be followed but prove nothing, such as garbled answers or those of a
/// later version. The framework asks again after pauses. No action by the user is needed.
///
/// ```swift
/// let state = try await session.syncManager.syncState(forLocalUserID: user.uuid)
/// for zone in state.stalledZones { print(zone.trunk, zone.error.explanation) }
/// ```
public struct ZDCStalledZone: Sendable, Hashable {
  /// The zone that is behind.
  public var zone: ZDCZoneID
  /// The trunk of the zone's tree.
  public var trunk: ZDCTreesystemTrunk
  /// The reason; `unsupportedVersion` requires an update of the app.
  public var error: ZDCSecurityError.Code
  /// The time at which the error was detected.
  public var since: Date
}
