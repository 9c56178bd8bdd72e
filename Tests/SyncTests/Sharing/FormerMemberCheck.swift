import ZDCAccounts
import ZDCProtocol
import ZDCSync
import ZeroDarkCloud
import ZeroDarkCloudTesting

@testable import ZDCCrypto

/// Tries a person's keys on everything that the server has, and finds what was written after they lost access.
///
/// Works like a former member who has the server's database: the decryption keys of all generations open the grants, these
/// the lists and the roots, and each record that opens has more keys. The keys are tried where a device that breaks the
/// rules could have used them: on the node that they belonged to, on the nodes below, and those of a zone on its lists.
///
/// A member of a branch also gets the keys that its nodes had before the split. With these, records of the parent zone open:
/// those of the branch, and of nodes that were moved out of it before, until they get new keys (SECURITY.md).
struct FormerMemberCheck {
  private struct Version {
    /// The number of its commit among all commits of the server.
    let position: Int
    let acl: ZoneACL
    var list: ZoneACL.Fields { acl.fields }
  }

  private let objects: TestServer.Objects
  /// The versions of the access lists of home trees.
  private let versions: [ZoneID: [Version]]
  /// The zones that their owner has ended. The keys of these are not replaced any more.
  private let ended: Set<ZoneID>
  private let splits: [SplitBranch]

  init(_ server: TestServer) throws {
    objects = try server.objects()
    var versions: [ZoneID: [Version]] = [:]
    var ended: Set<ZoneID> = []
    var places = NodePlaces()
    for (position, commit) in objects.commits.enumerated() {
      let zone = commit.fields.zone
      places.add(commit.fields, at: position)
      if commit.fields.operations.contains(where: { $0.deletes(zone.root) }) { ended.insert(zone) }
      guard commit.fields.operations.contains(where: \.isList), let acl = objects.lists[commit.fields.aclHash],
        acl.fields.trunk == .home
      else { continue }
      versions[zone, default: []].append(Version(position: position, acl: acl))
    }
    (self.versions, self.ended, splits) = (versions, ended, places.splits)
  }

  /// - Returns: The number of records that the person can open, of trees of others.
  /// - Throws: `TestFailure` if the person can open something that was written after they lost access.
  @discardableResult
  func run(_ keys: UserKeys) throws -> Int {
    let foreign = versions.filter { $0.value[0].list.owner != keys.userID }
    var attack = FormerMemberAttack(objects, trees: Set(foreign.keys.map(\.tree)))
    for version in foreign.values.joined() { try attack.open(version.acl, keys) }
    guard attack.hasKeys else { return 0 }
    try attack.openRecords()
    for (zone, versions) in foreign.sorted(by: { $0.key < $1.key }) {
      guard let end = try end(of: keys.userID, in: zone, versions) else { continue }
      for version in versions where version.position >= end && attack.opens(version.list) {
        throw TestFailure("the list \(version.list.version) of \(zone.root.text) opens without access")
      }
      try check(zone, from: end, attack, keys.userID)
    }
    return attack.opened.count
  }

  /// Returns the position from which on nothing of a zone may open; nil if the user has access.
  private func end(of user: UserID, in zone: ZoneID, _ versions: [Version]) throws -> Int? {
    guard let last = versions.lastIndex(where: { $0.list.entry(for: user) != nil }) else { return versions[0].position }
    guard last < versions.count - 1 else { return nil }
    // A member who leaves keeps the key until another member replaces it.
    let keyGen = versions[last].list.zoneKeyGen
    if let next = versions[last...].first(where: { $0.list.zoneKeyGen > keyGen }) { return next.position }
    guard ended.contains(zone) else { throw TestFailure("the key of \(zone.root.text) was not replaced") }
    return nil
  }

  /// Whether the node was split off later, or had been below a node that was split off, into a branch of which the user
  /// became a member.
  private func isHandedOver(_ node: NodeID, of zone: ZoneID, after position: Int, to user: UserID) -> Bool {
    splits.contains { split in
      guard split.parent == zone, split.position > position && split.nodes.contains(node) || split.left.contains(node)
      else { return false }
      let isMember = versions[split.zone]?.contains { $0.list.entry(for: user) != nil } ?? false
      return isMember || isHandedOver(node, of: split.zone, after: split.position, to: user)
    }
  }

  private func check(_ zone: ZoneID, from end: Int, _ attack: FormerMemberAttack, _ user: UserID) throws {
    for (position, commit) in objects.commits.enumerated().dropFirst(end) where commit.fields.zone == zone {
      for put in commit.puts where !isHandedOver(put.node, of: zone, after: position, to: user) {
        if attack.opened.contains(put.record) {
          throw TestFailure("a record of \(put.node.text) opens without access: commit \(commit.fields.seq)")
        }
        if let record = objects.records[put.record], attack.opensContent(of: record) {
          throw TestFailure("content of \(put.node.text) opens without access: commit \(commit.fields.seq)")
        }
      }
    }
  }
}

/// A branch that the owner has split off.
private struct SplitBranch {
  let position: Int
  let parent: ZoneID
  let zone: ZoneID
  let nodes: Set<NodeID>
  /// The nodes that were below one of them before, and are not any more.
  let left: Set<NodeID>
}

/// The nodes' places in the log, as far as splits need them.
private struct NodePlaces {
  private var parents: [ZoneID: [NodeID: NodeID]] = [:]
  private var pastParents: [ZoneID: [NodeID: Set<NodeID>]] = [:]
  private(set) var splits: [SplitBranch] = []

  mutating func add(_ commit: ZoneCommit.Fields, at position: Int) {
    for operation in commit.operations {
      switch operation {
      case .put(let put):
        parents[commit.zone, default: [:]][put.node] = put.parent
        pastParents[commit.zone, default: [:]][put.node, default: []].insert(put.parent)
      case .split(let top, _, _): split(top, from: commit.zone, at: position)
      default: break
      }
    }
  }

  private mutating func split(_ top: NodeID, from parent: ZoneID, at position: Int) {
    let (places, past) = (parents[parent] ?? [:], pastParents[parent] ?? [:])
    let nodes = Self.nodes(from: top) { inside in places.filter { inside.contains($0.value) }.keys }
    let all = Self.nodes(from: top) { inside in past.filter { !inside.isDisjoint(with: $0.value) }.keys }
    let zone = ZoneID(tree: parent.tree, root: top)
    parents[zone] = places.filter { nodes.contains($0.key) }
    pastParents[zone] = past.filter { all.contains($0.key) }
    splits.append(
      SplitBranch(position: position, parent: parent, zone: zone, nodes: nodes, left: all.subtracting(nodes)))
  }

  private static func nodes<Children: Sequence<NodeID>>(
    from top: NodeID, below: (Set<NodeID>) -> Children
  ) -> Set<NodeID> {
    var (nodes, count): (Set<NodeID>, Int) = ([top], 0)
    while nodes.count > count {
      count = nodes.count
      nodes.formUnion(below(nodes))
    }
    return nodes
  }
}

/// The keys that a person gets with their own keys and all of the server's data.
private struct FormerMemberAttack {
  private let objects: TestServer.Objects
  /// The records that are not open yet, with the number of keys that were tried on each.
  private var closed: [(record: NodeRecord, ownTried: Int, parentTried: Int)] = []
  private var keys: [NodeID: [NodeKey]] = [:]
  private var contents: [NodeID: [ContentSecrets]] = [:]
  private var knownBlobs: Set<BlobID> = []
  private(set) var opened: Set<RecordHash> = []

  var hasKeys: Bool { !keys.isEmpty }

  init(_ objects: TestServer.Objects, trees: Set<TreeID>) {
    self.objects = objects
    let order = objects.commits.filter { trees.contains($0.fields.zone.tree) }.flatMap(\.puts)
    closed = order.compactMap { objects.records[$0.record] }.map { ($0, 0, 0) }
  }

  // MARK: Keys

  /// Opens the user's grant of a list that names them, and the older keys in the list.
  mutating func open(_ acl: ZoneACL, _ user: UserKeys) throws {
    let list = acl.fields
    guard let entry = list.entry(for: user.userID), let grant = objects.grants[entry.wrapHash] else { return }
    let key = try user.open(grant, in: acl)
    add(key, of: list.zone.root)
    for older in try KeyHistory(of: list, key: key).entries { add(older.key, of: list.zone.root) }
  }

  private mutating func add(_ key: NodeKey, of node: NodeID) {
    if keys[node]?.contains(key) != true { keys[node, default: []].append(key) }
  }

  mutating func openRecords() throws {
    var count = -1
    while count != opened.count {
      count = opened.count
      for index in closed.indices { try open(index) }
      closed.removeAll { opened.contains($0.record.hash) }
    }
  }

  /// Tries the keys that were not tried on the record before.
  private mutating func open(_ index: Int) throws {
    let (record, ownTried, parentTried) = closed[index]
    let fields = record.fields
    for key in (keys[fields.parent] ?? []).dropFirst(parentTried) {
      let parent = ParentKeys(key, keyGen: fields.parentKeyGen)
      let unwrapped = try? parent.unwrap(fields.parentWrap, tree: fields.tree, node: fields.node, keyGen: fields.keyGen)
      if let unwrapped {
        opened.insert(record.hash)
        add(unwrapped, of: fields.node)
      }
    }
    for key in (keys[fields.node] ?? []).dropFirst(ownTried) where RecordOpener.isOpened(record, by: key) {
      opened.insert(record.hash)
      take(record, key)
    }
    (closed[index].ownTried, closed[index].parentTried) = (
      keys[fields.node]?.count ?? 0, keys[fields.parent]?.count ?? 0
    )
  }

  /// Takes the older keys and the content's key out of a record.
  private mutating func take(_ record: NodeRecord, _ key: NodeKey) {
    let fields = record.fields
    let history = try? KeyHistory(
      opening: fields.historyWrap, tree: fields.tree, node: fields.node, key: key, keyGen: fields.keyGen)
    for older in history?.entries ?? [] { add(older.key, of: fields.node) }
    guard let secrets = try? RecordOpener.openPrivate(record, capability: key.contentCapability).content else { return }
    contents[fields.node, default: []].append(secrets)
    if let blob = fields.content?.blobID { knownBlobs.insert(blob) }
  }

  // MARK: Objects

  func opens(_ list: ZoneACL.Fields) -> Bool {
    (keys[list.zone.root] ?? []).contains { KeyHistory.isOpened(list, by: $0) }
  }

  /// Whether a key of the node's earlier content opens its content, which was not there then: content that stays is not
  /// sealed again.
  func opensContent(of record: NodeRecord) -> Bool {
    guard let blob = record.fields.content?.blobID, !knownBlobs.contains(blob), let bytes = objects.contents[blob]
    else { return false }
    let header = Array(bytes.prefix(ContentGeometry.prefixBytes))
    return (contents[record.fields.node] ?? []).contains { $0.open(prefix: header, of: blob) }
  }
}

extension ZoneOperation {
  fileprivate var isList: Bool {
    guard case .acl = self else { return false }
    return true
  }

  fileprivate func deletes(_ root: NodeID) -> Bool {
    guard case .delete(let node, _, _) = self else { return false }
    return node == root
  }
}

extension TestDevice {
  /// The keys of the device's user, with the decryption keys of all generations.
  var userKeys: UserKeys {
    get async throws { try await syncManager.engine(for: try localUserID).session.keys }
  }
}
