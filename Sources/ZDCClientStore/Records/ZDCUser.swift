/// The state of another user's identity, as this device knows it (PROTOCOL 3.2).
///
/// ```swift
/// switch bob.identity {
/// case .verified: show(["compared"])
/// case .changed: show(["Bob's words were changed. Compare again."])
/// default: show(["not compared yet"])
/// }
/// ```
public enum ZDCIdentityState: Sendable, Hashable {
  /// The user's signed chain of keys holds. No person has compared it with the user yet.
  case seen
  /// A person at this device has compared the safety number or scanned the user's code, when the chain ended with this
  /// link.
  case verified(link: UInt32)
  /// The user's words were changed after the verification. That is usual after the loss of a device, and an attacker who
  /// has the words can do it too: compare again, or accept the change.
  case changed
  /// The user has closed the account.
  case closed
}

/// A user, local or not, whose identity chain this device has verified.
///
/// ```swift
/// let bob = try await connection.read { $0.user(id: bobsUserID) }
/// show([bob?.displayName ?? "unknown"])
/// ```
public struct ZDCUser: Sendable, Hashable, Identifiable {
  /// The text of the account's userID.
  public let uuid: String
  /// Whether the account is logged in on this device.
  public let isLocal: Bool
  /// The state of the user's identity, as this device knows it. A local user whose account is open is always verified.
  public let identity: ZDCIdentityState
  /// Whether the person at this device has blocked the user.
  public let isBlocked: Bool
  /// The name that the user has chosen; nil if this device has none. Anyone can choose any name.
  public let name: String?
  /// The handle that the user's signed chain claims, without an `@`; nil without one. No two users of a server have the
  /// same, and anyone can take any that is free.
  public let handle: String?

  /// The same as ``uuid``.
  public var id: String { uuid }
  /// Whether the account is not logged in on this device.
  ///
  /// ```swift
  /// let people = try await session.userManager.allUsers().filter(\.isRemote)
  /// ```
  public var isRemote: Bool { !isLocal }

  /// The text that a user list shows: the user's ``name``, else the ``handle`` with an `@`, else the start of the id.
  public var displayName: String { name ?? handle.map { "@\($0)" } ?? String(uuid.prefix(8)) }

  /// Creates a user, for previews and tests.
  ///
  /// - Parameters:
  ///   - uuid: The text of the account's user ID.
  ///   - isLocal: Whether the account is logged in on this device.
  public init(uuid: String, isLocal: Bool) {
    self.init(uuid: uuid, identity: isLocal ? .verified(link: 0) : .seen, isLocal: isLocal)
  }

  package init(
    uuid: String, identity: ZDCIdentityState, isLocal: Bool = false, isBlocked: Bool = false, name: String? = nil,
    handle: String? = nil
  ) {
    self.uuid = uuid
    self.isLocal = isLocal
    self.identity = identity
    self.isBlocked = isBlocked
    self.name = name
    self.handle = handle
  }

  /// Creates the user of an account that is logged in on this device.
  ///
  /// ```swift
  /// let picture = session.diskManager.userAvatar(ZDCUser(user))
  /// ```
  public init(_ localUser: ZDCLocalUser) {
    self.init(uuid: localUser.uuid, identity: .verified(link: 0), isLocal: true, name: localUser.name)
  }
}
