public import Foundation

/// An account that is logged in on this device.
///
/// A value: reading gives a copy. Its secrets stay in the database, sealed.
///
/// ```swift
/// for user in try await session.localUserManager.allLocalUsers() {
///   print(user.displayName, user.serverOrigin, user.addedDate)
/// }
/// ```
public struct ZDCLocalUser: Sendable, Hashable, Identifiable {
  /// The text of the account's userID; `localUserID` everywhere in the API.
  public let uuid: String
  /// The server that it was created on or logged in to, as `scheme://host[:port]`.
  public let serverOrigin: String
  /// The app's tree that it was set up for.
  public let treeID: String
  /// When it came to this device.
  public let addedDate: Date
  /// The name that the user has chosen; nil for none.
  public let name: String?

  /// The same as ``uuid``.
  public var id: String { uuid }
  /// Always true; so that code can treat a local user like a ``ZDCUser``.
  public var isLocal: Bool { true }

  /// The text that a user list shows: the user's ``name``, else the start of the id.
  public var displayName: String { name ?? String(uuid.prefix(8)) }

  package init(uuid: String, serverOrigin: String, treeID: String, addedDate: Date, name: String? = nil) {
    self.uuid = uuid
    self.serverOrigin = serverOrigin
    self.treeID = treeID
    self.addedDate = addedDate
    self.name = name
  }
}
