internal import Synchronization

/// The permissions of one user on a node.
///
/// A new item allows nothing; the app adds permissions.
///
/// ```swift
/// let item = ZDCShareItem()
/// item.addPermission(.read)
/// item.addPermission(.write)
/// ```
///
/// An item is an object, and may be changed on any thread. Calls that take one copy its permissions: later changes of the
/// item change neither a ``ZDCShareList`` nor a queued operation. Two items are equal if they have the same permissions,
/// so do not change one while a set or a dictionary has it as a key.
public final class ZDCShareItem: Sendable {
  private let letters: Mutex<Set<String>>

  /// Creates an item that allows nothing.
  public init() { letters = Mutex([]) }

  /// Creates an item from permission letters.
  ///
  /// ```swift
  /// let readAndWrite = ZDCShareItem(permissions: "rw")
  /// ```
  ///
  /// - Parameter permissions: The letters. Unknown letters are ignored.
  public init(permissions: String) {
    letters = Mutex(Set(permissions.filter { ZDCSharePermission(rawValue: $0) != nil }.map { String($0) }))
  }

  /// The permission letters, in the order of ``ZDCSharePermission``'s cases.
  ///
  /// ```swift
  /// let item = ZDCShareItem()
  /// item.addPermission(.read)
  /// print(item.permissions)  // r
  /// ```
  public var permissions: String {
    let current = letters.withLock { $0 }
    return String(ZDCSharePermission.allCases.map(\.rawValue).filter { current.contains(String($0)) })
  }

  /// Returns whether the item has the permission.
  ///
  /// ```swift
  /// let mayWrite = node.shareList.shareItem(forUserID: user.uuid)?.hasPermission(.write) ?? false
  /// ```
  public func hasPermission(_ permission: ZDCSharePermission) -> Bool {
    letters.withLock { $0.contains(String(permission.rawValue)) }
  }

  /// Adds a permission. Does nothing if the item already has it.
  public func addPermission(_ permission: ZDCSharePermission) {
    letters.withLock { _ = $0.insert(String(permission.rawValue)) }
  }

  /// Removes a permission. Does nothing if the item does not have it.
  public func removePermission(_ permission: ZDCSharePermission) {
    letters.withLock { _ = $0.remove(String(permission.rawValue)) }
  }

  /// Whether it allows nothing.
  public var isEmpty: Bool { letters.withLock { $0.isEmpty } }
}

extension ZDCShareItem: Hashable {
  /// Whether both items have the same permissions.
  public static func == (a: ZDCShareItem, b: ZDCShareItem) -> Bool { a.permissions == b.permissions }

  /// Hashes the permissions.
  public func hash(into hasher: inout Hasher) { hasher.combine(permissions) }
}

extension ZDCShareItem: Codable {
  private enum CodingKeys: String, CodingKey { case perms }

  /// Decodes the permission letters. Unknown letters are ignored.
  public convenience init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(permissions: try container.decode(String.self, forKey: .perms))
  }

  /// Encodes the permission letters under the key `perms`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(permissions, forKey: .perms)
  }
}
