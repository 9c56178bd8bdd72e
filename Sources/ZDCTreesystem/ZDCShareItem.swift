/// The permissions of one user on a node.
///
/// A new item allows nothing; the app adds permissions.
///
/// ```swift
/// var item = ZDCShareItem()
/// item.addPermission(.read)
/// item.addPermission(.write)
/// ```
public struct ZDCShareItem: Sendable, Hashable, Codable {
  private var letters: Set<String> = []

  /// Creates an item that allows nothing.
  public init() {}

  /// Creates an item from permission letters.
  ///
  /// ```swift
  /// let readAndWrite = ZDCShareItem(permissions: "rw")
  /// ```
  ///
  /// - Parameter permissions: The letters. Unknown letters are ignored.
  public init(permissions: String) {
    for letter in permissions { ZDCSharePermission(rawValue: letter).map { addPermission($0) } }
  }

  /// The permission letters, in the order of ``ZDCSharePermission``'s cases.
  ///
  /// ```swift
  /// var item = ZDCShareItem()
  /// item.addPermission(.read)
  /// print(item.permissions)  // r
  /// ```
  public var permissions: String {
    String(ZDCSharePermission.allCases.filter(hasPermission).map(\.rawValue))
  }

  /// Returns whether the item has the permission.
  ///
  /// ```swift
  /// let mayWrite = node.shareList.shareItem(forUserID: user.uuid)?.hasPermission(.write) ?? false
  /// ```
  public func hasPermission(_ permission: ZDCSharePermission) -> Bool {
    letters.contains(String(permission.rawValue))
  }

  /// Adds a permission. Does nothing if the item already has it.
  public mutating func addPermission(_ permission: ZDCSharePermission) {
    letters.insert(String(permission.rawValue))
  }

  /// Removes a permission. Does nothing if the item does not have it.
  public mutating func removePermission(_ permission: ZDCSharePermission) {
    letters.remove(String(permission.rawValue))
  }

  /// Whether it allows nothing.
  public var isEmpty: Bool { letters.isEmpty }
}

extension ZDCShareItem {
  private enum CodingKeys: String, CodingKey { case perms }

  /// Decodes the permission letters. Unknown letters are ignored.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(permissions: try container.decode(String.self, forKey: .perms))
  }

  /// Encodes the permission letters under the key `perms`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(permissions, forKey: .perms)
  }
}
