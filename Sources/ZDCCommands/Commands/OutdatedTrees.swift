internal import Foundation
internal import ZDCProtocol
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// Trees that do not follow their server, because the server's data fails verification. The local copies may be old.
struct OutdatedTrees: Sendable {
  /// `{"error","path","sinceMs","trunk","zone"}`
  struct Tree: Sendable, Hashable, Encodable {
    private enum CodingKeys: String, CodingKey { case path, trunk, zone, error, sinceMs }

    let id: ZDCZoneID
    /// The path of the tree's root, or of its trunk if this device does not know the root.
    var path: String
    var trunk: String
    var zone: String
    var error: ZDCSecurityError.Code
    var sinceMs: UInt64

    /// The path as it is printed.
    var place: String { ShownName.text(path) }
  }

  /// Trees that are neither pulled nor pushed until the user decides.
  private(set) var frozen: [Tree] = []
  /// Trees that the next sync requests again.
  private(set) var stalled: [Tree] = []

  /// Returns the trees that have nodes at, above or below a path.
  func around(_ path: ZDCTreesystemPath) -> OutdatedTrees {
    let listed = Self.folder(path.fullPath())
    let isNear = { (tree: Tree) in
      let top = Self.folder(tree.path)
      return top.hasPrefix(listed) || listed.hasPrefix(top)
    }
    return OutdatedTrees(frozen: frozen.filter(isNear), stalled: stalled.filter(isNear))
  }

  private static func folder(_ path: String) -> String { path.hasSuffix("/") ? path : path + "/" }

  /// One line for each tree.
  var lines: [String] {
    frozen.map { FrozenTrees.warning($0.error, at: $0.place) } + stalled.map(Self.stalledLine)
  }

  static func stalledLine(_ tree: Tree) -> String {
    "\(tree.place) may be out of date, because data from the server failed verification: "
      + "\(tree.error.explanation) (\(tree.error.rawValue)); run zdc sync to ask again"
  }
}

extension OutdatedTrees.Tree {
  fileprivate init(_ frozen: ZDCFrozenZone, _ cloud: ZDCCloudReadTransaction) {
    self.init(frozen.zone, frozen.trunk, frozen.error, since: frozen.since, cloud)
  }

  fileprivate init(_ stalled: ZDCStalledZone, _ cloud: ZDCCloudReadTransaction) {
    self.init(stalled.zone, stalled.trunk, stalled.error, since: stalled.since, cloud)
  }

  private init(
    _ zone: ZDCZoneID, _ trunk: ZDCTreesystemTrunk, _ error: ZDCSecurityError.Code, since: Date,
    _ cloud: ZDCCloudReadTransaction
  ) {
    let root = cloud.node(cloudID: zone.root.text).flatMap { cloud.path(for: $0)?.fullPath() }
    let trunk = FrozenTrees.name(trunk)
    self.init(
      id: zone, path: root ?? trunk, trunk: trunk, zone: zone.root.text, error: error,
      sinceMs: FrozenTrees.milliseconds(since))
  }
}

extension OpenProfile {
  func outdatedTrees(_ user: String) async throws -> OutdatedTrees {
    let state = try await sync.syncState(forLocalUserID: user)
    let (frozen, stalled) = (state.frozenZones, state.stalledZones)
    guard !frozen.isEmpty || !stalled.isEmpty else { return OutdatedTrees() }
    return try await reader.read { [self] transaction in
      let cloud = try cloud(transaction, user).cloud
      return OutdatedTrees(
        frozen: frozen.map { OutdatedTrees.Tree($0, cloud) }, stalled: stalled.map { OutdatedTrees.Tree($0, cloud) })
    }
  }
}
