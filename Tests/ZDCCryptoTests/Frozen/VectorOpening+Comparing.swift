import Testing
import ZDCProtocol

@testable import ZDCAccounts
@testable import ZDCCrypto

extension VectorOpening {
  func openSafetyNumber() throws {
    let users = try vector.byteLists("users").map { try #require(UserID($0)) }
    try #require(users.count == 2)
    #expect(try vector.string("digits") == ZDCSafetyNumber(users[0], users[1]).description)
  }

  /// A person scans the code of another user, and the server shows that user's chain.
  func openIdentityCode() throws {
    guard let code = IdentityCode(try vector.string("text")) else { throw ZDCSecurityError(.nonCanonicalEncoding) }
    if vector["meant"] != nil { try expectUser(code.user, UserID(try vector.bytes("meant"))) }
    let links = try vector.byteLists("links").map { try IdentityLink($0) }
    _ = try IdentityReplay.verify(links, expected: code.user)
    try code.check(links)
    try expect(code.user.bytes, "userID")
    #expect(try vector.int("seq") == Int(code.seq))
    try expect(code.hash.bytes, "head")
    #expect(try vector.string("text") == code.text)
  }

  private func expectUser(_ user: UserID, _ meant: UserID?) throws { try require(user == meant, .userIDMismatch) }

  func openMount() throws {
    let genesis = try #require(CommitHash(try vector.bytes("genesis")))
    try expect(NodeID.mount(ofZoneWith: genesis).bytes, "nodeID")
  }

  func openRemount() throws {
    let zone = ZoneID(
      tree: try #require(TreeID(try vector.bytes("treeID"))), root: try #require(NodeID(try vector.bytes("zoneRoot"))))
    let pointer = try #require(NodeID(try vector.bytes("pointer")))
    try expect(NodeID.remount(of: zone, after: pointer).bytes, "nodeID")
  }
}
