package import ZDCProtocol

/// The permissions of all users on a node: the effective list of its zone.
///
/// ```swift
/// let others = node.shareList.allUserIDs().filter { $0 != user.uuid }
/// show(others.compactMap { cloud.user(id: $0)?.displayName })
/// ```
public struct ZDCShareList: Sendable, Hashable, Codable {
  private var items: [String: ZDCShareItem] = [:]

  /// Creates an empty list.
  public init() {}

  /// The number of users with an item.
  public var count: Int { items.count }

  /// Whether no user has an item.
  public var isEmpty: Bool { items.isEmpty }

  /// All users with an item, sorted.
  ///
  /// ```swift
  /// show(node.shareList.allUserIDs().compactMap { cloud.user(id: $0)?.displayName })
  /// ```
  public func allUserIDs() -> [String] { items.keys.sorted() }

  /// Returns the number of users with an item.
  public func countOfUserIDs() -> Int { items.count }

  /// Returns the number of users with an item, without that user.
  ///
  /// ```swift
  /// let isShared = node.shareList.countOfUserIDs(excluding: user.uuid) > 0
  /// ```
  public func countOfUserIDs(excluding userID: String) -> Int {
    items.keys.count { $0 != userID }
  }

  /// Returns whether the user has an item.
  ///
  /// ```swift
  /// let isShared = node.shareList.hasShareItem(forUserID: bobsUserID)
  /// ```
  public func hasShareItem(forUserID userID: String) -> Bool { items[userID] != nil }

  /// Returns a copy of the user's item; nil if they have none. Changing the copy does not change the list.
  ///
  /// ```swift
  /// let permissions = node.shareList.shareItem(forUserID: bobsUserID)?.permissions ?? ""
  /// ```
  public func shareItem(forUserID userID: String) -> ZDCShareItem? { items[userID].map(ZDCShareItem.init) }

  /// Adds a copy of an item for a user who has none.
  ///
  /// - Returns: false if the user already has one. The list is then unchanged.
  @discardableResult
  public mutating func addShareItem(_ item: ZDCShareItem, forUserID userID: String) -> Bool {
    guard items[userID] == nil else { return false }
    items[userID] = ZDCShareItem(item)
    return true
  }

  /// Removes the user's item. Does nothing if they have none.
  public mutating func removeShareItem(forUserID userID: String) {
    items[userID] = nil
  }

  /// Removes the items of all users.
  public mutating func removeAllShareItems() {
    items = [:]
  }
}

extension ZDCShareList {
  /// Creates the share list from a zone's access list.
  package init(_ acl: ZoneACL) {
    for entry in acl.fields.entries { items[entry.user.text] = ZDCShareItem(entry.permissions) }
  }
}

extension ZDCShareItem {
  fileprivate convenience init(_ other: ZDCShareItem) { self.init(permissions: other.permissions) }

  package convenience init(_ permissions: ZoneACL.Permissions) {
    self.init()
    for (letter, bit) in Self.bits where permissions.contains(bit) { addPermission(letter) }
  }

  package var aclPermissions: ZoneACL.Permissions {
    Self.bits.reduce(into: []) { result, pair in
      if hasPermission(pair.0) { result.insert(pair.1) }
    }
  }

  private static let bits: [(ZDCSharePermission, ZoneACL.Permissions)] = [
    (.read, .read), (.write, .write), (.share, .share), (.recordsOnly, .recordsOnly), (.leafsOnly, .leafsOnly),
    (.userOnly, .userOnly), (.writeOnce, .writeOnce), (.burnIfSender, .burnIfSender),
  ]
}
