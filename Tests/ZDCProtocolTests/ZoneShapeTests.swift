import Testing
import ZDCProtocol

/// Parents, cycles, depth and key generations, decided from commits alone (PROTOCOL, "Zone log", "Rotation").
@Suite struct ZoneShapeTests {
  private let alice: TestUser

  init() throws {
    alice = try TestUser(seed: 1)
  }

  /// root → 1 → 2 → 3, and 4 next to 1.
  private func tree() throws -> TestZone {
    var zone = try TestZone.born(owner: alice)
    try zone.apply([
      zone.put(.n(1)), zone.put(.n(2), below: .n(1), parentKeyGen: 1), zone.put(.n(3), below: .n(2), parentKeyGen: 1),
      zone.put(.n(4)),
    ])
    return zone
  }

  private func refusalOf(_ operations: [ZoneOperation], in zone: TestZone) throws -> ZDCSecurityError.Code? {
    var zone = zone
    let commit = try zone.commit(operations)
    return refusal { try zone.apply(commit) }
  }

  private func delete(_ node: NodeID, _ count: UInt64, in zone: TestZone) -> ZoneOperation {
    .delete(node: node, record: zone.state.leaf(node)?.record ?? .zero, liveDescendants: count)
  }

  // MARK: Shape

  @Test func aParentComesFirstAndIsLive() throws {
    let zone = try tree()
    #expect(try refusalOf([zone.put(.n(9), below: .n(8), parentKeyGen: 1)], in: zone) == .objectMissing)
    let child = zone.put(.n(9), below: .n(8), parentKeyGen: 1)
    #expect(try refusalOf([child, zone.put(.n(8))], in: zone) == .objectMissing)
    #expect(try refusalOf([zone.put(.n(8)), child], in: zone) == nil)
    let below = zone.put(.n(9), below: .n(1), parentKeyGen: 1)
    #expect(try refusalOf([delete(.n(1), 2, in: zone), below], in: zone) == .objectMissing)
    // Also if the commit itself has just looked up the parent.
    let after = zone.put(.n(10), below: .n(1), parentKeyGen: 1)
    #expect(try refusalOf([below, delete(.n(1), 3, in: zone), after], in: zone) == .objectMissing)
  }

  @Test func noNodeHasTheIDOfTheRootsParent() throws {
    let zone = try tree()
    #expect(try refusalOf([zone.put(.zero)], in: zone) == .nonCanonicalEncoding)
    #expect(try refusalOf([zone.put(.zero, below: .n(1), parentKeyGen: 1)], in: zone) == .nonCanonicalEncoding)
  }

  @Test func aNodeIsTouchedOnceACommit() throws {
    let zone = try tree()
    #expect(try refusalOf([zone.put(.n(4)), zone.put(.n(4))], in: zone) == .nonCanonicalEncoding)
    #expect(try refusalOf([zone.put(.n(4)), delete(.n(4), 0, in: zone)], in: zone) == .nonCanonicalEncoding)
  }

  @Test func movesAreRecordedAndMakeNoCycle() throws {
    var zone = try tree()
    #expect(try refusalOf([zone.put(.n(1), below: .n(1))], in: zone) == .treeCycle)
    #expect(try refusalOf([zone.put(.n(1), below: .n(2))], in: zone) == .treeCycle)
    #expect(try refusalOf([zone.put(.n(1), below: .n(3))], in: zone) == .treeCycle)
    try zone.apply([zone.put(.n(2), below: .n(4))])
    #expect(zone.state.descendantCount(of: .n(4)) == 2)
    #expect(zone.state.descendantCount(of: .n(1)) == 0)
    // Before the previous commit, this move was a cycle.
    #expect(try refusalOf([zone.put(.n(1), below: .n(3))], in: zone) == nil)
  }

  @Test func aCycleOutOfTwoMovesOfOneCommitIsSeen() throws {
    let zone = try tree()
    let moves = [zone.put(.n(4), below: .n(3)), zone.put(.n(1), below: .n(4))]
    #expect(try refusalOf(moves, in: zone) == .treeCycle)
  }

  @Test func theRootNeitherMovesNorGoes() throws {
    let zone = try tree()
    #expect(try refusalOf([delete(zone.zone.root, 4, in: zone)], in: zone) == .writerNotAuthorized)
    #expect(try refusalOf([zone.put(zone.zone.root, below: .n(1))], in: zone) == .treeCycle)
    #expect(try refusalOf([zone.rootPut], in: zone) == nil)
  }

  @Test func aDeleteNamesTheVersionAndTheNumberBelow() throws {
    var zone = try tree()
    #expect(try refusalOf([delete(.n(1), 1, in: zone)], in: zone) == .moveMismatch)
    let old = ZoneOperation.delete(node: .n(1), record: .init(5, 5, 5, 5), liveDescendants: 2)
    #expect(try refusalOf([old], in: zone) == .recordHashMismatch)
    #expect(try refusalOf([delete(.n(9), 0, in: zone)], in: zone) == .objectMissing)
    try zone.apply([delete(.n(1), 2, in: zone)])
    #expect(Set(zone.state.leaves.keys) == [zone.zone.root, .n(4)])
    #expect(try refusalOf([delete(.n(3), 0, in: zone)], in: zone) == .objectMissing)
  }

  @Test func childrenOfOneCommitCountForItsDelete() throws {
    let zone = try tree()
    let child = zone.put(.n(9), below: .n(4), parentKeyGen: 1)
    #expect(try refusalOf([child, delete(.n(4), 0, in: zone)], in: zone) == .moveMismatch)
    #expect(try refusalOf([child, delete(.n(4), 1, in: zone)], in: zone) == nil)
  }

  @Test func depthEndsAt128ForNewNodesAnd256AfterMoves() throws {
    var zone = try TestZone.born(owner: alice)
    func chain(_ range: ClosedRange<UInt64>, below start: NodeID) -> [ZoneOperation] {
      range.map { zone.put(.n($0), below: $0 == range.lowerBound ? start : .n($0 - 1), parentKeyGen: 1) }
    }
    try zone.apply(chain(1...128, below: zone.zone.root))
    #expect(try refusalOf([zone.put(.n(129), below: .n(128), parentKeyGen: 1)], in: zone) == .limitExceeded)
    try zone.apply(chain(1_001...1_128, below: zone.zone.root))
    try zone.apply([zone.put(.n(1_001), below: .n(128))])
    #expect(zone.state.descendantCount(of: .n(1)) == 255)
    // A node that keeps its parent may still be changed, however deep it is.
    #expect(try refusalOf([zone.put(.n(1_128), below: .n(1_127), version: 2)], in: zone) == nil)
    try zone.apply([zone.put(.n(2_000))])
    #expect(try refusalOf([zone.put(.n(2_000), below: .n(1_127))], in: zone) == nil)
    #expect(try refusalOf([zone.put(.n(2_000), below: .n(1_128))], in: zone) == .limitExceeded)
  }

  @Test func aMoveTakesTheDepthOfItsWholeBranchAlong() throws {
    var zone = try TestZone.born(owner: alice)
    func chain(_ range: ClosedRange<UInt64>) -> [ZoneOperation] {
      range.map { zone.put(.n($0), below: $0 == range.lowerBound ? nil : .n($0 - 1), parentKeyGen: 1) }
    }
    try zone.apply(chain(1...128) + chain(1_001...1_128) + chain(2_001...2_002))
    try zone.apply([zone.put(.n(1_001), below: .n(128))])
    // 2,001 would be at 256, and 2,002 below it at 257.
    #expect(try refusalOf([zone.put(.n(2_001), below: .n(1_127))], in: zone) == .limitExceeded)
    #expect(try refusalOf([zone.put(.n(2_001), below: .n(1_126))], in: zone) == nil)
    // Moving up, or to the same depth as before, is always possible.
    #expect(try refusalOf([zone.put(.n(1_001), below: zone.zone.root)], in: zone) == nil)
    // Each of several moves in one commit counts the depths that the previous ones left.
    let moves = [zone.put(.n(2_001), below: .n(1_126)), zone.put(.n(1_001), below: .n(127))]
    #expect(try refusalOf(moves, in: zone) == nil)
    try zone.apply([zone.put(.n(3_000))])
    #expect(
      try refusalOf([zone.put(.n(2_001), below: .n(3_000)), zone.put(.n(3_000), below: .n(1_126))], in: zone)
        == .limitExceeded)
  }

  // MARK: Key generations

  /// The zone after its root was rotated: 1, 2, 3 and 4 are stale.
  private func rotated() throws -> TestZone {
    var zone = try tree()
    let head = try #require(zone.head)
    var fields = zone.next(after: head.acl, by: alice)
    fields.zoneKeyGen = 2
    let acl = try zone.signed(fields, by: alice)
    let root = zone.put(zone.zone.root, below: .zero, keyGen: 2, parentKeyGen: 0)
    try zone.apply(zone.commit([.acl(version: 2, hash: acl.hash), root], acl: acl), acl: acl)
    return zone
  }

  @Test func rotationNeedsListAndRootTogether() throws {
    let zone = try tree()
    let root = zone.put(zone.zone.root, below: .zero, keyGen: 2, parentKeyGen: 0)
    #expect(try refusalOf([root], in: zone) == .keyCommitmentMismatch)
    let head = try #require(zone.head)
    var fields = zone.next(after: head.acl, by: alice)
    fields.zoneKeyGen = 2
    let acl = try zone.signed(fields, by: alice)
    let commit = try zone.commit([.acl(version: 2, hash: acl.hash)], acl: acl)
    #expect(
      refusal {
        var copy = zone
        try copy.apply(commit, acl: acl)
      } == .keyCommitmentMismatch)
  }

  @Test func afterARotationThePathIsRotatedBeforeAnythingIsWritten() throws {
    let zone = try rotated()
    // Nothing is put under a stale parent, neither new nor old nodes.
    #expect(try refusalOf([zone.put(.n(9), below: .n(1))], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(2), below: .n(1), keyGen: 2)], in: zone) == .staleKeyGeneration)
    // A stale node put with its old key, or with the parent's old generation.
    #expect(try refusalOf([zone.put(.n(1), keyGen: 1)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(1), keyGen: 2, parentKeyGen: 1)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(1), keyGen: 3)], in: zone) == .staleKeyGeneration)
    let path = [
      zone.put(.n(1), keyGen: 2), zone.put(.n(2), below: .n(1), keyGen: 2, parentKeyGen: 2),
      zone.put(.n(9), below: .n(2), parentKeyGen: 2),
    ]
    #expect(try refusalOf(path, in: zone) == nil)
    #expect(try refusalOf(path.reversed(), in: zone) == .staleKeyGeneration)
    // Fresh nodes need no rotation: a new node below the root.
    #expect(try refusalOf([zone.put(.n(9))], in: zone) == nil)
  }

  @Test func aStaleAncestorMakesAllBelowItStale() throws {
    var zone = try rotated()
    try zone.apply([zone.put(.n(1), keyGen: 2)])
    // 2 was wrapped under the old key of 1, 3 under the key of 2.
    #expect(try refusalOf([zone.put(.n(3), below: .n(2), version: 2)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(2), below: .n(1), keyGen: 2)], in: zone) == nil)
  }

  @Test func aStaleNodeMayBeMovedOrDeletedButOnlyWithANewKey() throws {
    let zone = try rotated()
    #expect(try refusalOf([zone.put(.n(3), parentKeyGen: 2)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(3), keyGen: 2, parentKeyGen: 2)], in: zone) == nil)
    #expect(try refusalOf([delete(.n(1), 2, in: zone)], in: zone) == nil)
  }

  @Test func generationsNeverFallNorJump() throws {
    var zone = try tree()
    #expect(try refusalOf([zone.put(.n(4), keyGen: 0)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(4), keyGen: 3)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(9), keyGen: 0)], in: zone) == .staleKeyGeneration)
    zone = try rotated()
    try zone.apply([zone.put(.n(4), keyGen: 2)])
    #expect(try refusalOf([zone.put(.n(4), keyGen: 1)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(9), below: .n(4), parentKeyGen: 1)], in: zone) == .staleKeyGeneration)
    #expect(try refusalOf([zone.put(.n(9), below: .n(4), parentKeyGen: 3)], in: zone) == .staleKeyGeneration)
  }
}
