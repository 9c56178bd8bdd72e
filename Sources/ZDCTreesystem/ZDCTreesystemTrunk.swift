package import ZDCProtocol

/// The top-level containers of a tree.
///
/// Every local user has one root for each of the first four. They are created with the account and cannot be created,
/// moved or deleted.
///
/// ```swift
/// let theme = ZDCTreesystemPath(pathComponents: ["theme"], trunk: .prefs)
/// if cloud.node(path: theme) == nil { try cloud.createNode(withPath: theme) }
/// ```
public enum ZDCTreesystemTrunk: String, Sendable, Codable, CaseIterable {
  /// The app's data. The only trunk whose nodes can be shared.
  case home
  /// The user's private preferences, which sync between their devices.
  case prefs
  /// The user's copies of outgoing messages.
  case outbox
  /// Incoming messages from other users.
  case inbox
  /// Not a container: the trees of other users that the local user has accepted. The first name of such a path is the
  /// ``ZDCNode/cloudID`` of the tree's root.
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

  /// The protocol's trunk; nil for `detached`, which exists only on this device.
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
