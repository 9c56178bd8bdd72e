public import Foundation
public import ZDCProtocol

/// A tree that is neither pulled nor pushed, because its server showed something that cannot be: local data stays readable,
/// changes are queued, and nothing more happens until the user decides.
public struct ZDCFrozenZone: Sendable, Hashable {
  public var zone: ZoneID
  public var trunk: Trunk
  public var error: ZDCSecurityError.Code
  /// When it was found out.
  public var since: Date
  /// Whether a member's signature proves it. Otherwise each launch tries again, and the tree is no longer frozen once the
  /// server's log extends what this device had verified.
  public var isProven = false
}

/// A tree whose server gives answers that cannot be followed and prove nothing: garbled ones, or ones of a later version.
/// The framework asks again after pauses, and your users need not do anything.
public struct ZDCStalledZone: Sendable, Hashable {
  public var zone: ZoneID
  public var trunk: Trunk
  /// `unsupportedVersion` asks for an update of the app.
  public var error: ZDCSecurityError.Code
  /// When it was found out.
  public var since: Date
}
