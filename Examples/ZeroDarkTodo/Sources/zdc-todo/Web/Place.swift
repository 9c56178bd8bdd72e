/// A page of an account, parsed from its URL path.
enum Place: Hashable, Sendable {
  case lists
  case list(String)
  case task(String, inList: String)
  case activity

  init?(path: String) {
    let parts = path.split(separator: "/").dropFirst(2).map(String.init)
    switch parts.count {
    case 0: self = .lists
    case 1 where parts[0] == "activity": self = .activity
    case 2 where parts[0] == "list": self = .list(parts[1])
    case 3 where parts[0] == "list": self = .task(parts[2], inList: parts[1])
    default: return nil
    }
  }

  /// The path below that of the account.
  var path: String {
    switch self {
    case .lists: ""
    case .list(let list): "/list/\(list)"
    case .task(let task, let list): "/list/\(list)/\(task)"
    case .activity: "/activity"
    }
  }

  var listID: String? {
    switch self {
    case .list(let list), .task(_, inList: let list): list
    case .lists, .activity: nil
    }
  }

  var taskID: String? {
    if case .task(let task, _) = self { task } else { nil }
  }
}
