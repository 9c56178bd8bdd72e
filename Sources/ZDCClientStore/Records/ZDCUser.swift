/// A user, local or not, whose identity chain this device has verified.
public struct ZDCUser: Sendable, Hashable, Identifiable {
  /// The text of the account's userID.
  public let uuid: String
  /// Whether the account is logged in on this device.
  public let isLocal: Bool

  /// The same as ``uuid``.
  public var id: String { uuid }
  /// Whether the account is not logged in on this device.
  public var isRemote: Bool { !isLocal }

  /// The text that a user list shows for a user without a handle: the start of the id.
  public var displayName: String { String(uuid.prefix(8)) }

  /// Creates a user, for previews and tests.
  ///
  /// - Parameters:
  ///   - uuid: The text of the account's user ID.
  ///   - isLocal: Whether the account is logged in on this device.
  public init(uuid: String, isLocal: Bool) {
    self.uuid = uuid
    self.isLocal = isLocal
  }

  /// Creates the user of an account that is logged in on this device.
  ///
  /// ```swift
  /// let picture = session.diskManager.userAvatar(ZDCUser(user))
  /// ```
  public init(_ localUser: ZDCLocalUser) {
    self.init(uuid: localUser.uuid, isLocal: true)
  }
}
