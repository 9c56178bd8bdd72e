import ZDCProtocol

/// A split that is about to happen: the commit of the parent zone, and the genesis of the new one.
struct TestSplit {
  /// The new zone, whose log is empty.
  var child: TestZone
  var acl: ZoneACL
  var genesis: ZoneCommit
  /// The state with which the new zone begins.
  var list: StateList
  /// The operations of the parent zone.
  var operations: [ZoneOperation]

  /// Prepares a split of `node`, with a mount where the node was.
  init(_ node: NodeID, of parent: TestZone, mount: NodeID = .n(9_999)) throws {
    let top = parent.state.leaf(node)
    list = StateList(branch: parent.state.branch(node, upTo: .max), top: node)
    child = TestZone(owner: parent.owner, root: node)
    child.users = parent.users
    var fields = child.firstFields
    fields.zoneKeyGen = (top?.keyGen ?? 0) + 1
    fields.historyWrap = [UInt8](repeating: 3, count: 108)
    acl = try child.signed(fields, by: parent.owner)
    let state = ZoneOperation.GenesisState(
      parentHead: parent.head?.hash ?? .zero, stateRoot: list.root, count: list.count)
    genesis = try Self.genesis(of: child, state, acl: acl)
    operations = [
      .split(node: node, genesis: genesis.hash, count: list.count),
      parent.put(mount, below: top?.parent),
    ]
  }

  /// Signs a genesis with other values.
  static func genesis(
    of child: TestZone, _ state: ZoneOperation.GenesisState, acl: ZoneACL, keyGen: UInt32? = nil,
    _ change: (inout ZoneCommit.Fields) -> Void = { _ in }
  ) throws -> ZoneCommit {
    let root = ZoneOperation.Put(
      node: child.zone.root, parent: .zero, record: .init(8, 8, 8, 8), keyGen: keyGen ?? acl.fields.zoneKeyGen,
      parentKeyGen: 0)
    var fields = child.nextFields(
      [.genesisState(state), .acl(version: 1, hash: acl.hash), .put(root)], acl: acl)
    fields.prev = ZoneCommit.genesisPrev(zone: child.zone, parentHead: state.parentHead)
    change(&fields)
    return try child.signed(fields, by: child.owner)
  }

  var state: ZoneOperation.GenesisState {
    get throws {
      guard let state = genesis.fields.genesisState else { throw ZDCSecurityError(.splitMismatch) }
      return state
    }
  }

  /// Applies both commits, as a member of both zones does.
  static func split(_ node: NodeID, of parent: inout TestZone, mount: NodeID = .n(9_999)) throws -> TestZone {
    var split = try TestSplit(node, of: parent, mount: mount)
    try parent.apply(split.operations)
    guard let known = parent.split else { throw ZDCSecurityError(.splitMismatch) }
    try known.check(split.genesis)
    try split.child.apply(split.genesis, acl: split.acl, list: known.list)
    return split.child
  }
}
