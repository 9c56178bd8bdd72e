import Foundation
import ZDCProtocol

@testable import ZDCCrypto

/// All frozen cases, generated from seeds. Values that cannot be reproduced (HPKE takes no seed in the platform's API)
/// come from the stored file.
struct VectorCases {
  let world: FrozenWorld
  private(set) var cases: [Vector] = []

  static func all() throws -> [Vector] {
    var cases = VectorCases(world: try FrozenWorld())
    try cases.addAccount()
    try cases.addChains()
    try cases.addKeyrings()
    try cases.addNames()
    try cases.addRecords()
    try cases.addHistories()
    try cases.addGrants()
    try cases.addLogs()
    try cases.addMembers()
    try cases.addSplits()
    try cases.addClosings()
    try cases.addRights()
    try cases.addListEdits()
    try cases.addAttached()
    try cases.addMessages()
    try cases.addContents()
    try cases.addLocal()
    try cases.addTree()
    try cases.addPuts()
    try cases.addLongChains()
    try cases.addDeviceLinks()
    cases.addCloudPaths()
    cases.addSafetyNumbers()
    try cases.addIdentityCodes()
    cases.addPointerIDs()
    return cases.cases
  }

  mutating func add(
    _ name: String, _ kind: String, _ about: String, expect: String = "ok", _ members: [String: VectorValue]
  ) {
    cases.append(Vector(name, kind, about: about, expect: expect, members))
  }

  mutating func add(
    _ name: String, _ kind: String, _ about: String, expect code: ZDCSecurityError.Code,
    _ members: [String: VectorValue]
  ) {
    add(name, kind, about, expect: code.rawValue, members)
  }
}

/// The account of the vectors: its secrets come from a seed, its grants from the stored file.
struct FrozenWorld: IdentityDirectory {
  static let appTreeID = "com.example.vectors"
  static let timeMs: UInt64 = 1_790_000_000_000

  let birth: NewAccount
  let identity: VerifiedIdentity

  init() throws {
    var source = SeededSource("zdc1 vectors account")
    var stored = Self.storedWraps()[...]
    birth = try NewAccount(
      accessKey: .random(&source), appTreeID: Self.appTreeID, timeMs: Self.timeMs, random: &source
    ) { sealer, owner in
      guard let wrap = stored.popFirst() else {
        return try sealer.seal(for: owner.user, encGen: owner.encGen, encPub: owner.encPub)
      }
      return Grant(zone: sealer.zone, zoneKeyGen: sealer.zoneKeyGen, user: owner.user, wrap: wrap)
    }
    identity = try IdentityReplay.verify([birth.genesis])
  }

  /// The four wraps of the stored account; empty before the first write.
  private static func storedWraps() -> [[UInt8]] {
    guard let vector = try? Vector(contentsOf: Vector.url("account")) else { return [] }
    let grants = try? vector.objects("trunks").map { try Grant(try $0.bytes("grant")).wrap }
    return grants ?? []
  }

  func signKey(user: UserID, generation: UInt32) -> [UInt8]? {
    user == identity.userID ? identity.signKeys[generation] : nil
  }

  var home: TrunkGenesis { birth.trunks[0] }
  var homeKeys: ParentKeys { ParentKeys(home.key, keyGen: 1) }

  func sign(_ label: StaticString) -> ([UInt8]) throws -> [UInt8] {
    { try birth.signingKey.sign(label: label, message: $0) }
  }
}

extension SeededSource {
  mutating func nodeID() -> NodeID { NodeID(bytes(16)) ?? .zero }
  mutating func blobID() -> BlobID { BlobID(bytes(16)) ?? .zero }
}

/// Returns the stored grant of a case, or a new one before the first write.
func storedGrant(_ name: String, make: () throws -> Grant) throws -> Grant {
  if let vector = try? Vector(contentsOf: Vector.url(name)), let bytes = try? vector.bytes("grant") {
    return try Grant(bytes)
  }
  return try make()
}
