import ZDCProtocol

@testable import ZDCAccounts
@testable import ZDCCrypto

extension VectorCases {
  // MARK: safety numbers (PROTOCOL 3.2)

  mutating func addSafetyNumbers() {
    func members(_ first: UserID, _ second: UserID) -> [String: VectorValue] {
      [
        "users": VectorValue([VectorValue(first.bytes), VectorValue(second.bytes)]),
        "digits": .text(ZDCSafetyNumber(first, second).description),
      ]
    }
    let (small, large) = (UserID(1, 2, 3, 4), world.birth.userID)
    add("safety-number", "safety-number", "two users, the one with the larger ID first", members(large, small))
    add("safety-number-swapped", "safety-number", "the same users in the other order", members(small, large))
    add(
      "safety-number-zeros", "safety-number", "a group that begins with three zeros",
      members(UserID(0, 0, 0, 59), UserID(0, 0, 0, 5)))
  }

  // MARK: codes of users (PROTOCOL 3.2)

  mutating func addIdentityCodes() throws {
    let links = try links()
    let (user, other) = (world.birth.userID, UserID(1, 2, 3, 4))
    let chain = [world.birth.genesis, links.rotateKeys, links.claims, links.rotateRoot]
    func members(_ code: IdentityCode, _ chain: [IdentityLink]) -> [String: VectorValue] {
      [
        "text": .text(code.text), "userID": VectorValue(code.user.bytes), "seq": VectorValue(code.seq),
        "head": VectorValue(code.hash.bytes), "links": VectorValue(chain.map { VectorValue($0.bytes) }),
      ]
    }
    func code(_ link: IdentityLink) -> IdentityCode { IdentityCode(user: user, seq: link.seq, hash: link.hash) }
    func refuse(_ name: String, _ about: String, _ code: ZDCSecurityError.Code, _ members: [String: VectorValue]) {
      add("identity-code-\(name)", "identity-code", about, expect: code, members)
    }
    add("identity-code", "identity-code", "a chain of one link", members(code(chain[0]), [chain[0]]))
    add("identity-code-end", "identity-code", "the end of a chain of four links", members(code(chain[3]), chain))
    add("identity-code-longer", "identity-code", "the chain has continued since", members(code(chain[1]), chain))
    refuse(
      "rollback", "the chain ends before the link", .identityChainRollback, members(code(chain[2]), Array(chain[..<2])))
    refuse(
      "link", "another link in that place", .identityChainInvalid,
      members(IdentityCode(user: user, seq: 1, hash: chain[0].hash), chain))
    let whole = members(code(chain[3]), chain)
    refuse(
      "meant", "the code of another user than the one that was meant", .userIDMismatch,
      whole.merging(["meant": VectorValue(other.bytes)]) { $1 })
    refuse(
      "chain", "the server shows the chain of another user", .userIDMismatch,
      members(IdentityCode(user: other, seq: 3, hash: chain[3].hash), chain))
    addMalformedCodes(code(chain[3]).text, whole)
  }

  private mutating func addMalformedCodes(_ text: String, _ members: [String: VectorValue]) {
    let data = String(text.dropFirst(IdentityCode.prefix.count))
    let texts: [(name: String, about: String, text: String)] = [
      ("short", "a letter too few", String(text.dropLast())), ("long", "a letter too many", text + "y"),
      ("capital", "capital letters", IdentityCode.prefix + data.uppercased()),
      ("unused", "an unused bit that is not zero", Self.settingUnusedBit(text)),
      ("version", "another version", "zdcid:2:" + data), ("no-prefix", "no prefix", data),
      ("other", "the prefix of a code of a device", DeviceLinkCode.prefix + data),
      ("no-data", "nothing but the prefix", IdentityCode.prefix), ("empty", "no text", ""),
    ]
    for (name, about, text) in texts {
      add(
        "identity-code-\(name)", "identity-code", about, expect: .nonCanonicalEncoding,
        members.merging(["text": .text(text)]) { $1 })
    }
  }

  /// The last letter has four bits of the data, and one bit that is zero.
  private static func settingUnusedBit(_ text: String) -> String {
    let alphabet = Array("ybndrfg8ejkmcpqxot1uwisza345h769")
    guard let last = text.last, let value = alphabet.firstIndex(of: last) else { return text }
    return String(text.dropLast()) + String(alphabet[value | 1])
  }

  // MARK: IDs of pointers (PROTOCOL 3.7)

  mutating func addPointerIDs() {
    func mount(_ name: String, _ about: String, _ genesis: CommitHash) {
      add(
        name, "mount", about,
        ["genesis": VectorValue(genesis.bytes), "nodeID": VectorValue(NodeID.mount(ofZoneWith: genesis).bytes)])
    }
    mount("mount", "the pointer that a split leaves, by the first commit of the new zone", CommitHash(1, 2, 3, 4))
    mount("mount-commit", "the same for a commit of the vectors", world.home.commit.hash)
    func remount(_ name: String, _ about: String, _ zone: ZoneID, _ pointer: NodeID) {
      add(
        name, "remount", about,
        [
          "treeID": VectorValue(zone.tree.bytes), "zoneRoot": VectorValue(zone.root.bytes),
          "pointer": VectorValue(pointer.bytes),
          "nodeID": VectorValue(NodeID.remount(of: zone, after: pointer).bytes),
        ])
    }
    let branch = ZoneID(tree: world.home.zone.tree, root: NodeID(high: 1, low: 1))
    let first = NodeID.mount(ofZoneWith: CommitHash(1, 2, 3, 4))
    remount("remount", "the pointer in place of the one that a split has left", branch, first)
    remount("remount-again", "the pointer in place of that one", branch, .remount(of: branch, after: first))
  }
}
