/// What a share item allows, by its letter (reference: permission letters).
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
