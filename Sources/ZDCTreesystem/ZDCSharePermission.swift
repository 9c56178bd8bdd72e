/// A permission of a share item, identified by its letter.
///
/// ```swift
/// var item = ZDCShareItem()
/// for permission in [ZDCSharePermission.read, .write] { item.addPermission(permission) }
/// ```
public enum ZDCSharePermission: Character, Sendable, CaseIterable {
  case read = "r"
  case write = "w"
  /// May change the access list.
  case share = "s"
  case recordsOnly = "R"
  case leafsOnly = "L"
  case userOnly = "U"
  case writeOnce = "W"
  case burnIfSender = "B"
}
