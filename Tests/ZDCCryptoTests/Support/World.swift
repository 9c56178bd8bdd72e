import ZDCProtocol

@testable import ZDCCrypto

/// A small account created from a seed: the starting point of most tests.
struct World {
  static let appTreeID = "com.example.vectors"
  static let timeMs: UInt64 = 1_790_000_000_000

  let birth: NewAccount
  let identity: VerifiedIdentity

  init(_ seed: String = "world") throws {
    var source = SeededSource(seed)
    birth = try NewAccount(
      accessKey: .random(&source), appTreeID: Self.appTreeID, timeMs: Self.timeMs, random: &source)
    identity = try IdentityReplay.verify([birth.genesis])
  }

  var home: TrunkGenesis { birth.trunks[0] }

  var homeKeys: ParentKeys { ParentKeys(home.key, keyGen: 1) }

  /// A node below home.
  func draft(
    _ name: String, key: NodeKey = .random(), content: SealedContent? = nil
  ) throws -> RecordDraft {
    RecordDraft(
      tree: home.zone.tree, node: .random(), parent: home.zone.root, key: key, parentLink: .keys(homeKeys),
      secrets: RecordPrivate(
        name: try FoldedName(name), createdMs: Self.timeMs, content: content.map(\.secrets)),
      content: content?.content(dataVersion: 1), writer: birth.userID, writerGen: 1, timeMs: Self.timeMs)
  }
}

extension World: IdentityDirectory {
  func signKey(user: UserID, generation: UInt32) -> [UInt8]? {
    user == identity.userID ? identity.signKeys[generation] : nil
  }
}

/// Returns the code of the security error that `body` throws, or nil if it succeeds.
func securityCode(_ body: () throws -> Void) throws -> ZDCSecurityError.Code? {
  do {
    try body()
    return nil
  } catch let error as ZDCSecurityError { return error.code }
}

/// Returns bytes that reveal their position: byte i is (i × 31 + i / 256) mod 251.
func pattern(_ count: Int) -> [UInt8] {
  (0..<count).map { UInt8(($0 &* 31 &+ $0 / 256) % 251) }
}
