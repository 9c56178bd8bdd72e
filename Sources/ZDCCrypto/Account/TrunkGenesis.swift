package import ZDCProtocol

/// The owner of a new trunk, with their current keys.
package struct TrunkOwner: Sendable {
  package let user: UserID
  package let signingKey: SigningKey
  package let signGen: UInt32
  package let encPub: [UInt8]
  package let encGen: UInt32

  package init(user: UserID, signingKey: SigningKey, signGen: UInt32, encPub: [UInt8], encGen: UInt32) {
    self.user = user
    self.signingKey = signingKey
    self.signGen = signGen
    self.encPub = encPub
    self.encGen = encGen
  }
}

/// The initial objects of a trunk (PROTOCOL 3.9, "Birth of a trunk").
///
/// Created only for a new account, or for an app whose tree the verified identity chain does not claim.
package struct TrunkGenesis: Sendable {
  package let trunk: Trunk
  package let zone: ZoneID
  package let key: NodeKey
  package let root: NodeRecord
  package let grant: Grant
  package let acl: ZoneACL
  /// Commit seq 0: the access list and the root.
  package let commit: ZoneCommit

  package typealias WrapKey = (GrantSealer, TrunkOwner) throws -> Grant

  /// - Parameter timeMs: The device's clock, in milliseconds since 1970.
  package init(_ trunk: Trunk, appTreeID: String, owner: TrunkOwner, timeMs: UInt64) throws {
    var source = SystemRandomSource()
    try self.init(trunk, appTreeID: appTreeID, owner: owner, timeMs: timeMs, random: &source)
  }

  /// The public API of HPKE takes no seed, so frozen vectors supply their own grant.
  package init(
    _ trunk: Trunk, appTreeID: String, owner: TrunkOwner, timeMs: UInt64, random: inout some RandomSource,
    wrap: WrapKey = { try $0.seal(for: $1.user, encGen: $1.encGen, encPub: $1.encPub) }
  ) throws {
    guard AppTreeID.isValid(appTreeID) else { throw CryptoFailure.invalidParameter }
    let zone = ZoneID(trunkOf: .derive(owner: owner.user, trunk: trunk, appTreeID: appTreeID))
    let key = NodeKey.random(&random)
    self.trunk = trunk
    self.zone = zone
    self.key = key
    root = try Self.makeRoot(zone, key: key, owner: owner, timeMs: timeMs, random: &random)
    grant = try wrap(GrantSealer(zone: zone, zoneKeyGen: 1, key: key), owner)
    acl = try Self.makeACL(
      trunk, appTreeID: appTreeID, zone: zone, key: key, grant: grant, owner: owner, timeMs: timeMs)
    commit = try Self.makeCommit(zone, acl: acl, root: root, owner: owner, timeMs: timeMs)
  }

  private static func makeRoot(
    _ zone: ZoneID, key: NodeKey, owner: TrunkOwner, timeMs: UInt64, random: inout some RandomSource
  ) throws -> NodeRecord {
    var draft = RecordDraft(
      tree: zone.tree, node: zone.root, parent: .zero, key: key, parentLink: .none,
      secrets: RecordPrivate(name: nil, createdMs: timeMs), writer: owner.user, writerGen: owner.signGen,
      timeMs: timeMs)
    draft.isZoneRoot = true
    return try RecordSealer.seal(draft, random: &random)
  }

  private static func makeACL(
    _ trunk: Trunk, appTreeID: String, zone: ZoneID, key: NodeKey, grant: Grant, owner: TrunkOwner, timeMs: UInt64
  ) throws -> ZoneACL {
    let entry = ZoneACL.Entry(
      user: owner.user, permissions: [.read, .write, .share], encGen: owner.encGen, wrapKind: .nodeKey,
      wrapHash: grant.wrapHash)
    let fields = ZoneACL.Fields(
      zone: zone, owner: owner.user, trunk: trunk, appTreeID: appTreeID, version: 1, prev: .zero,
      parentLinked: false, zoneKeyGen: 1, commitments: key.commitments, entries: [entry], writer: owner.user,
      writerGen: owner.signGen, timeMs: timeMs)
    return try ZoneACL(fields) { try owner.signingKey.sign(label: "acl", message: $0) }
  }

  private static func makeCommit(
    _ zone: ZoneID, acl: ZoneACL, root: NodeRecord, owner: TrunkOwner, timeMs: UInt64
  ) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: zone, seq: 0, prev: ZoneCommit.genesisPrev(zone: zone), aclHash: acl.hash, writer: owner.user,
      writerGen: owner.signGen, timeMs: timeMs,
      operations: [.acl(version: 1, hash: acl.hash), .put(ZoneOperation.Put(root))])
    return try ZoneCommit(fields) { try owner.signingKey.sign(label: "commit", message: $0) }
  }
}
