import Testing
import ZDCProtocol

/// Limits that bound the work of a verifier and keep accounts and nodes usable.
@Suite struct LimitRuleTests {
  // MARK: Chains

  @Test("S2: a link has at most 2 KiB of claims")
  func claimsOfALink() throws {
    let user = try TestUser()
    func refusalOfClaim(_ count: Int) -> ZDCSecurityError.Code? {
      var fields = user.nextFields(.claims)
      fields.claims = [
        IdentityLink.Claim(type: IdentityLink.Claim.handle, value: [UInt8](repeating: 0x61, count: count))
      ]
      return refusal { _ = try user.sign(fields) }
    }
    #expect(refusalOfClaim(2_048 - 3) == nil)
    #expect(refusalOfClaim(2_048 - 2) == .limitExceeded)
  }

  /// - a chain grows by one link at a time until a link is refused
  /// => the accepted links can be verified again as a whole, and the refused one is refused there too
  @Test("S2: a chain that was accepted link by link can always be read")
  func chainAtItsLimit() throws {
    var user = try TestUser()
    var identity = try IdentityReplay.begin(user.chain[0])
    var code: ZDCSecurityError.Code?
    while code == nil {
      var fields = user.nextFields(.claims)
      let value = [UInt8](repeating: 0x61, count: 2_000)
      fields.claims = [IdentityLink.Claim(type: IdentityLink.Claim.handle, value: value)]
      try user.append(fields)
      code = refusal { try IdentityReplay.extend(&identity, with: user.chain[user.chain.count - 1]) }
    }
    #expect(code == .limitExceeded)
    #expect(identity.byteCount <= 1 << 20)
    #expect(identity.byteCount + user.chain[user.chain.count - 1].bytes.count > 1 << 20)
    let accepted = Array(user.chain.dropLast())
    #expect(try IdentityReplay.verify(accepted, expected: user.id) == identity)
    #expect(refusal { _ = try IdentityReplay.verify(user.chain) } == .limitExceeded)
    var bundle = Bundle.Writer()
    for link in accepted { bundle.append(link: link.bytes) }
    #expect(bundle.bytes.count <= Limits.chainBundleBytes)
  }

  @Test("S2: the newest link and the chain's length are enough to check the next link")
  func resumedChain() throws {
    var user = try TestUser()
    try user.rotateSignKey()
    try user.rotateRoot()
    let last = user.chain[2]
    let whole = try IdentityReplay.verify(user.chain)
    var resumed = IdentityReplay.resume(after: last, byteCount: whole.byteCount)
    try user.rotateSignKey()
    try IdentityReplay.extend(&resumed, with: user.chain[3])
    let expected = try IdentityReplay.verify(user.chain)
    #expect((resumed.head, resumed.seq, resumed.byteCount) == (expected.head, expected.seq, expected.byteCount))
    var full = IdentityReplay.resume(after: last, byteCount: Limits.chainBytes - user.chain[3].bytes.count + 1)
    #expect(refusal { try IdentityReplay.extend(&full, with: user.chain[3]) } == .limitExceeded)
    var closed = user
    try closed.append(closed.nextFields(.closed))
    var ended = IdentityReplay.resume(after: closed.chain[4], byteCount: 1)
    try closed.rotateSignKey()
    #expect(refusal { try IdentityReplay.extend(&ended, with: closed.chain[5]) } == .identityChainInvalid)
  }

  // MARK: Deletes

  /// Returns a zone whose folder 1 has this many children.
  private func zone(childrenOf1 count: UInt64) throws -> TestZone {
    var zone = try TestZone.born(owner: try TestUser())
    try zone.apply([zone.put(.n(1)), zone.put(.n(2)), zone.put(.n(3), below: .n(2), parentKeyGen: 1)])
    for start in stride(from: UInt64(100), to: 100 + count, by: 1_000) {
      try zone.apply((start..<min(start + 1_000, 100 + count)).map { zone.put(.n($0), below: .n(1)) })
    }
    return zone
  }

  private func delete(_ node: NodeID, _ count: UInt64, in zone: TestZone) -> ZoneOperation {
    .delete(node: node, record: zone.state.leaf(node)?.record ?? .zero, liveDescendants: count)
  }

  @Test("S7: the deletes of a commit name at most 10,000 live descendants together")
  func largeDeletes() throws {
    let zone = try zone(childrenOf1: 10_000)
    func refusalOf(_ operations: [ZoneOperation]) throws -> ZDCSecurityError.Code? {
      var copy = zone
      let commit = try copy.commit(operations)
      return refusal { try copy.apply(commit) }
    }
    #expect(try refusalOf([delete(.n(1), 10_000, in: zone)]) == nil)
    #expect(try refusalOf([delete(.n(1), 10_000, in: zone), delete(.n(2), 1, in: zone)]) == .limitExceeded)
    // The claim is compared with the limit before any node is looked up.
    #expect(try refusalOf([delete(.n(1), 10_001, in: zone)]) == .limitExceeded)
    #expect(try refusalOf([delete(.n(9), .max, in: zone)]) == .limitExceeded)
    #expect(try refusalOf([delete(.n(1), 1, in: zone), delete(.n(2), .max, in: zone)]) == .moveMismatch)
  }

  @Test("S7: replay asks for no more than the number that the delete states")
  func boundedCounting() throws {
    let state = CountingState(try zone(childrenOf1: 2_000).state)
    #expect(state.inner.descendantCount(of: .n(1), upTo: 5) > 5)
    #expect(state.inner.descendantCount(of: .n(1), upTo: 2_000) == 2_000)
    var counted = state
    let shape = try counted.refusalOfDelete(claiming: 3)
    #expect(shape == .moveMismatch)
    #expect(counted.limits.values == [3])
  }

  @Test("S7: replay asks for no more levels than a moved branch has room for")
  func boundedHeights() throws {
    var zone = try TestZone.born(owner: try TestUser())
    try zone.apply((1...100).map { zone.put(.n($0), below: $0 == 1 ? zone.zone.root : .n($0 - 1), parentKeyGen: 1) })
    try zone.apply([zone.put(.n(1_000))])
    var state = CountingState(zone.state)
    let commit = try zone.commit([zone.put(.n(1_000), below: .n(100))])
    _ = try ZoneReplay(identities: try TestDirectory(zone.users)).apply(commit, acl: nil, after: zone.head, to: &state)
    #expect(state.heights.values == [256 - 101])
    #expect(zone.state.height(of: .n(1), upTo: 9) == 10)
    #expect(zone.state.height(of: .n(1), upTo: 99) == 99)
  }

  // MARK: Versions

  private func record(_ change: (inout NodeRecord.Fields) -> Void) -> NodeRecord {
    var generator = SeededGenerator(seed: 1)
    var fields = Samples.record(&generator, allFields: true)
    fields.commitments = nil
    (fields.recordVersion, fields.prevRecord) = (1, .zero)
    fields.content?.dataVersion = 1
    change(&fields)
    return NodeRecord(fields)
  }

  private func refusalOf(_ record: NodeRecord, replacing old: NodeRecord?) -> ZDCSecurityError.Code? {
    let leaf = old.map {
      LogNode(node: $0.fields.node, parent: $0.fields.parent, record: $0.hash, putSeq: 0, keyGen: 1, parentKeyGen: 1)
    }
    let zone = ZoneID(tree: record.fields.tree, root: .n(1))
    return refusal {
      try RecordRules.check(record, put: .init(record), zone: zone, replaced: leaf, previous: old)
    }
  }

  @Test("C7: a version rises by at most 2^32 in a put")
  func versionJumps() {
    let jump: UInt64 = 1 << 32
    // A new node may have the content of one that is moved or restored.
    #expect(refusalOf(record { $0.content?.dataVersion = 1 << 63 }, replacing: nil) == nil)
    #expect(refusalOf(record { $0.content?.dataVersion = 1 << 63 + 1 }, replacing: nil) == .limitExceeded)
    #expect(refusalOf(record { $0.content?.dataVersion = .max }, replacing: nil) == .limitExceeded)
    let old = record { _ in }
    func next(_ version: UInt64, _ data: UInt64) -> NodeRecord {
      record {
        ($0.recordVersion, $0.prevRecord) = (version, old.hash)
        guard data > 1 else { return }
        $0.content?.dataVersion = data
        $0.content?.blobID = .zero
      }
    }
    #expect(refusalOf(next(1 + jump, 1 + jump), replacing: old) == nil)
    #expect(refusalOf(next(2 + jump, 1), replacing: old) == .limitExceeded)
    #expect(refusalOf(next(.max, 1), replacing: old) == .limitExceeded)
    #expect(refusalOf(next(2, 2 + jump), replacing: old) == .limitExceeded)
    #expect(refusalOf(next(2, .max), replacing: old) == .limitExceeded)
  }

  @Test("C7: only a record that follows the pinned one directly is checked for its step")
  func jumpsOfSkippedVersions() {
    let jump: UInt64 = 1 << 32
    let old = record { _ in }
    let far = record { ($0.recordVersion, $0.prevRecord) = (5 * jump, .init(1, 1, 1, 1)) }
    let near = record { ($0.recordVersion, $0.prevRecord) = (5 * jump, old.hash) }
    let pin = RecordPin(recordVersion: 1, content: old.fields.content, record: old.hash)
    #expect(refusal { try RecordRules.check(far, after: pin) } == nil)
    #expect(refusal { try RecordRules.check(near, after: pin) } == .limitExceeded)
  }

  @Test("C7: the version after the largest one is an error and no trap")
  func lastVersion() throws {
    #expect(try RecordRules.version(after: 41) == 42)
    #expect(refusal { _ = try RecordRules.version(after: .max) } == .limitExceeded)
  }
}

/// Records the limits up to which replay asks a state to count.
private struct CountingState: ZoneState {
  final class Asked {
    var values: [UInt64] = []
  }

  var inner: MemoryZoneState
  let limits = Asked()
  let heights = Asked()

  init(_ state: MemoryZoneState) { inner = state }

  func leaf(_ node: NodeID) -> LogNode? { inner.leaf(node) }
  func height(of node: NodeID, upTo limit: Int) -> Int {
    heights.values.append(UInt64(limit))
    return inner.height(of: node, upTo: limit)
  }

  mutating func put(_ leaf: LogNode, replacing old: LogNode?) { inner.put(leaf, replacing: old) }
  mutating func removeSubtree(_ node: NodeID) { inner.removeSubtree(node) }
  func writer(of leaf: LogNode) -> UserID? { inner.writer(of: leaf) }

  func descendantCount(of node: NodeID, upTo limit: UInt64) -> UInt64 {
    limits.values.append(limit)
    return inner.descendantCount(of: node, upTo: limit)
  }

  /// Replays a commit that deletes node 1 and claims this many nodes below it.
  mutating func refusalOfDelete(claiming count: UInt64) throws -> ZDCSecurityError.Code? {
    let zone = try TestZone.born(owner: try TestUser())
    let record = inner.leaf(.n(1))?.record ?? .zero
    let commit = try zone.commit([.delete(node: .n(1), record: record, liveDescendants: count)])
    let replay = ZoneReplay(identities: try TestDirectory(zone.users))
    return refusal { _ = try replay.apply(commit, acl: nil, after: zone.head, to: &self) }
  }
}
