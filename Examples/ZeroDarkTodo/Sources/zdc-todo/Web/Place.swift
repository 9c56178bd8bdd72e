import Foundation

/// A page of an account, parsed from its URL path.
enum Place: Hashable, Sendable {
  case lists
  case list(String)
  case task(String, inList: String)
  /// The people with access to a list.
  case sharing(String)
  /// A person's access to a list.
  case access(String, toList: String)
  case person(String)
  case invitations
  case activity

  init?(path: String) {
    let parts = path.split(separator: "/").dropFirst(2).compactMap(\.removingPercentEncoding)
    switch parts.count {
    case 0: self = .lists
    case 1 where parts[0] == "activity": self = .activity
    case 1 where parts[0] == "invitations": self = .invitations
    case 2 where parts[0] == "list": self = .list(parts[1])
    case 2 where parts[0] == "person": self = .person(parts[1])
    case 3 where parts[0] == "list" && parts[2] == "share": self = .sharing(parts[1])
    case 3 where parts[0] == "list": self = .task(parts[2], inList: parts[1])
    case 4 where parts[0] == "list" && parts[2] == "share": self = .access(parts[3], toList: parts[1])
    default: return nil
    }
  }

  /// The path below that of the account.
  var path: String {
    switch self {
    case .lists: ""
    case .list(let list): "/list/\(list)"
    case .task(let task, let list): "/list/\(list)/\(task)"
    case .sharing(let list): "/list/\(list)/share"
    case .access(let user, let list): "/list/\(list)/share/\(user)"
    case .person(let user): "/person/\(user)"
    case .invitations: "/invitations"
    case .activity: "/activity"
    }
  }

  var listID: String? {
    switch self {
    case .list(let list), .task(_, inList: let list), .sharing(let list), .access(_, toList: let list): list
    case .lists, .person, .invitations, .activity: nil
    }
  }

  var taskID: String? {
    if case .task(let task, _) = self { task } else { nil }
  }

  /// The person whom the page shows. The invitations show the account's own handle.
  func userID(own user: String) -> String? {
    switch self {
    case .access(let user, _), .person(let user): user
    case .invitations: user
    default: nil
    }
  }
}
