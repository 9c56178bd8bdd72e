import Testing
import ZDCProtocol

/// State lists: one encoding, one root, and only trees (PROTOCOL, "Zone log").
@Suite struct StateListTests {
  private func node(_ number: UInt64, below parent: UInt64, keyGen: UInt32 = 1, parentKeyGen: UInt32 = 1) -> LogNode {
    LogNode(
      node: .n(number), parent: parent == 0 ? .zero : .n(parent), record: .init(number, 0, 0, 0), putSeq: 0,
      keyGen: keyGen, parentKeyGen: parent == 0 ? 0 : parentKeyGen)
  }

  /// Refuses or accepts a genesis that names exactly these nodes, signed by the owner.
  private func refusalOf(_ nodes: [LogNode]) throws -> ZDCSecurityError.Code? {
    var out: [UInt8] = []
    // Each list is encoded as it is: `StateList(branch:)` would give the root its form.
    for node in nodes.sorted(by: { $0.node < $1.node }) {
      var entry = ByteWriter()
      entry.append(node.node)
      entry.append(node.parent)
      entry.append(node.record)
      entry.append(node.keyGen)
      entry.append(node.parentKeyGen)
      out += entry.bytes
    }
    let list = try StateList(out)
    var child = TestZone(owner: try TestUser(seed: 1), root: .n(1))
    var fields = child.firstFields
    fields.zoneKeyGen = 2
    let acl = try child.signed(fields, by: child.owner)
    let state = ZoneOperation.GenesisState(parentHead: .init(1, 1, 1, 1), stateRoot: list.root, count: list.count)
    let genesis = try TestSplit.genesis(of: child, state, acl: acl)
    return refusal { try child.apply(genesis, acl: acl, list: list) }
  }

  @Test func onlyATreeBelowTheRootIsAState() throws {
    let rows: [([LogNode], Bool)] = [
      ([node(1, below: 0)], true),
      ([node(1, below: 0), node(2, below: 1), node(3, below: 2), node(4, below: 1)], true),
      // No root; another root; two roots; a root with a place.
      ([node(2, below: 0)], false), ([node(2, below: 1)], false),
      ([node(1, below: 0), node(2, below: 0)], false),
      ([node(1, below: 9), node(2, below: 1)], false),
      // A node whose parent is not there; its own parent; a ring.
      ([node(1, below: 0), node(2, below: 8)], false), ([node(1, below: 0), node(2, below: 2)], false),
      ([node(1, below: 0), node(2, below: 3), node(3, below: 2)], false),
      // Generations from 0, and from the parent's future.
      ([node(1, below: 0), node(2, below: 1, keyGen: 0)], false),
      ([node(1, below: 0), node(2, below: 1, parentKeyGen: 2)], false),
      ([node(1, below: 0), node(2, below: 1, keyGen: 3), node(3, below: 2, parentKeyGen: 3)], true),
    ]
    for (nodes, isTree) in rows {
      #expect(try refusalOf(nodes) == (isTree ? nil : .splitMismatch), "\(nodes.map(\.node))")
    }
    var bare = node(1, below: 0)
    bare.parentKeyGen = 1
    #expect(try refusalOf([bare]) == .splitMismatch)
  }

  @Test func aStateIsNoDeeperThanMovesAllow() throws {
    func chain(_ depth: UInt64) -> [LogNode] { (1...depth + 1).map { node($0, below: $0 - 1) } }
    #expect(try refusalOf(chain(256)) == nil)
    #expect(try refusalOf(chain(257)) == .splitMismatch)
  }

  @Test func aListIsSortedAndWhole() throws {
    let list = StateList(branch: [node(1, below: 0), node(2, below: 1)], top: .n(1))
    let bytes = list.bytes
    #expect(bytes.count == 144)
    #expect(try StateList(bytes) == list)
    #expect(refusal { _ = try StateList(Array(bytes[72...] + bytes[..<72])) } == .nonCanonicalEncoding)
    #expect(refusal { _ = try StateList(Array(bytes[..<72] + bytes[..<72])) } == .nonCanonicalEncoding)
    #expect(refusal { _ = try StateList([]) } == .nonCanonicalEncoding)
    var unnamed = node(2, below: 1)
    unnamed.node = .zero
    let zero = StateList(branch: [unnamed, node(1, below: 0)], top: .n(1))
    #expect(refusal { _ = try StateList(zero.bytes) } == .nonCanonicalEncoding)
    #expect(refusal { _ = try StateList(Array(bytes.dropLast())) } == .nonCanonicalEncoding)
  }

  @Test func theRootIsThatOfTheTreeOverTheEntries() {
    let nodes = (1...7).map { node(UInt64($0), below: UInt64($0) - 1) }
    let list = StateList(branch: nodes, top: .n(1))
    let bytes = list.bytes
    let hashes = (0..<7).map { MerkleTree.leafHash(bytes[$0 * 72..<($0 + 1) * 72]) }
    #expect(list.root.bytes == MerkleTree.root(leafHashes: hashes).bytes)
  }

  @Test("each flipped bit of a list is refused")
  func flippedBits() throws {
    let alice = try TestUser(seed: 1)
    var parent = try TestZone.born(owner: alice)
    try parent.apply([parent.put(.n(1)), parent.put(.n(2), below: .n(1), parentKeyGen: 1)])
    let split = try TestSplit(.n(1), of: parent)
    let bytes = split.list.bytes
    for bit in 0..<bytes.count * 8 {
      var changed = bytes
      changed[bit / 8] ^= 1 << (bit % 8)
      let code = refusal {
        var child = split.child
        try child.apply(split.genesis, acl: split.acl, list: try StateList(changed))
      }
      #expect(code == .splitMismatch || code == .nonCanonicalEncoding, "bit \(bit)")
    }
  }
}
