package import ZDCProtocol

/// The top-level containers of a tree (reference: trunks).
///
/// Every local user has one root for each of the first four; they are made with the account and cannot be created,
/// moved or deleted.
public enum ZDCTreesystemTrunk: String, Sendable, Codable, CaseIterable {
  /// The app's data. The only trunk whose nodes can be shared.
  case home
  /// Preferences that follow the user, private to him.
  case prefs
  /// Own copies of messages on their way out.
  case outbox
  /// Where other users' messages arrive.
  case inbox
  /// Not a container: nodes that are on their way into somebody else's tree.
  case detached
}

extension ZDCTreesystemTrunk {
  package init(_ trunk: Trunk) {
    switch trunk {
    case .home: self = .home
    case .prefs: self = .prefs
    case .outbox: self = .outbox
    case .inbox: self = .inbox
    }
  }

  /// The protocol's trunk; nil for `detached`, which is on this device only.
  package var protocolTrunk: Trunk? {
    switch self {
    case .home: .home
    case .prefs: .prefs
    case .outbox: .outbox
    case .inbox: .inbox
    case .detached: nil
    }
  }
}
