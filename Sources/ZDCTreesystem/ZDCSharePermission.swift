/// A permission of a share item, identified by its letter.
///
/// ```swift
/// let item = ZDCShareItem()
/// for permission in [ZDCSharePermission.read, .write] { item.addPermission(permission) }
/// ```
public enum ZDCSharePermission: Character, Sendable, CaseIterable {
  case read = "r"
  case write = "w"
  /// May change the access list.
  case share = "s"
  /// May write nodes without content only. This and the following narrow ``write``.
  case recordsOnly = "R"
  /// May write nodes directly below the top only.
  case leafsOnly = "L"
  /// May write one node only, directly below the top. Each such member has their own.
  case userOnly = "U"
  /// May create nodes, and not change or delete them.
  case writeOnce = "W"
  /// May delete the nodes that they have written. It stands with ``writeOnce``.
  case burnIfSender = "B"
}
