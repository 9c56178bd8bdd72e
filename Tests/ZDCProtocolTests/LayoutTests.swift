import Testing
import ZDCProtocol

/// PROTOCOL.md's offsets and sizes, as numbers.
@Suite struct LayoutTests {
  private func bytes(_ range: Range<Int>, of object: [UInt8]) -> [UInt8] { Array(object[range]) }

  @Test func identityLinkFieldsStandWhereTheTableSays() throws {
    var generator = SeededGenerator(seed: 1)
    let link = try IdentityLink(Samples.link(&generator))
    #expect(bytes(0..<6, of: link.bytes) == Array("ZDIL".utf8) + [1, 1])
    #expect(link.bytes[6] == 1)
    #expect(bytes(7..<11, of: link.bytes) == [0, 0, 0, 7])
    #expect(bytes(11..<43, of: link.bytes) == link.prev.bytes)
    #expect(bytes(43..<75, of: link.bytes) == link.statedUserID.bytes)
    #expect(bytes(83..<115, of: link.bytes) == link.rootPub)
    #expect(bytes(119..<151, of: link.bytes) == link.signPub)
    #expect(bytes(155..<1_371, of: link.bytes) == link.encPub)
    #expect(link.bytes[1_371] == link.compromise)
    #expect(bytes(1_380..<1_412, of: link.bytes) == link.keyringHash.bytes)
    #expect(link.signedBytes.count == link.bytes.count - 192)
  }

  @Test func userIDCoversTheKeysAndStopsBeforeTheKeyring() throws {
    var generator = SeededGenerator(seed: 2)
    var fields = IdentityLink.Fields(
      kind: .genesis, timeMs: 5, rootPub: generator.bytes(32), signPub: generator.bytes(32),
      encPub: generator.bytes(1_216))
    let before = fields.genesisUserID
    fields.keyringHash = Samples.id32(&generator)
    fields.keyringVersion = 9
    fields.claims = [.init(type: 1, value: [1])]
    #expect(fields.genesisUserID == before)
    let link = try IdentityLink(fields.unsignedBytes + generator.bytes(192))
    #expect(link.userID == before)
    #expect(link.userID == UserID(labelledHash: "user-id", Array(link.bytes[0..<1_372])))
    fields.encPub[1_215] ^= 1
    #expect(fields.genesisUserID != before)
  }

  @Test func commitCosts276BytesAnd73APut() throws {
    var generator = SeededGenerator(seed: 3)
    var fields = Samples.commit(&generator)
    let put = try #require(fields.operations.first)
    for count in [1, 2, 1_000] {
      fields.operations = Array(repeating: put, count: count)
      let commit = ZoneCommit(fields, sign: { _ in [UInt8](repeating: 0, count: 64) })
      #expect(commit.bytes.count == 276 + 73 * count)
    }
  }

  @Test func operationsHaveTheSizesOfTheTable() {
    var generator = SeededGenerator(seed: 4)
    let empty = ZoneCommit.Fields(
      zone: Samples.zone(&generator), seq: 0, prev: .zero, aclHash: .zero, writer: .zero, writerGen: 0, timeMs: 0,
      operations: [])
    let sizes = Samples.operations(&generator).map { operation in
      var fields = empty
      fields.operations = [operation]
      return fields.unsignedBytes.count - empty.unsignedBytes.count
    }
    #expect(sizes == [73, 57, 37, 57, 37, 73])
  }

  @Test func recordWithoutOptionsBeginsWithTheseFields() {
    var generator = SeededGenerator(seed: 5)
    var fields = Samples.record(&generator, allFields: true)
    #expect(NodeRecord(fields).bytes[6...7].elementsEqual([0, 31]))
    fields.commitments = nil
    fields.content = nil
    fields.dataAuthor = nil
    fields.burnMs = nil
    fields.isPointer = false
    let record = NodeRecord(fields)
    #expect(bytes(0..<8, of: record.bytes) == Array("ZDNR".utf8) + [1, 1, 0, 0])
    #expect(bytes(8..<40, of: record.bytes) == fields.tree.bytes)
    #expect(bytes(40..<56, of: record.bytes) == fields.node.bytes)
    #expect(bytes(56..<72, of: record.bytes) == fields.parent.bytes)
    #expect(bytes(80..<112, of: record.bytes) == fields.prevRecord.bytes)
    #expect(bytes(120..<122, of: record.bytes) == [0, 104])
    #expect(record.bytes.count == 188 + 104 + 108 + 200)
  }

  @Test func accessListCosts71BytesAnEntry() {
    var generator = SeededGenerator(seed: 6)
    var fields = Samples.acl(&generator)
    let long = fields.unsignedBytes.count
    fields.entries.removeLast()
    #expect(long - fields.unsignedBytes.count == 71)
    #expect(fields.entry(for: fields.entries[0].user) == fields.entries[0])
    #expect(fields.entry(for: .zero) == nil)
  }

  @Test func hashesBeginWithTheLabel() {
    let expected = Bytes32<LinkHashRole>(sha256: Array("zdc1/link".utf8) + [0, 1, 2, 3])
    #expect(LinkHash(labelledHash: "link", [1, 2, 3]) == expected)
    #expect(LinkHash(labelledHash: "link", [1], [2, 3]) == expected)
    #expect(LinkHash(labelledHash: "link", slice: [0, 1, 2, 3].dropFirst()) == expected)
    #expect(labelPrefix("link") == Array("zdc1/link".utf8) + [0])
  }

  @Test func treeIDHashesOwnerTrunkAndName() {
    var generator = SeededGenerator(seed: 7)
    let owner: UserID = Samples.id32(&generator)
    let name = "com.example.app"
    let input = owner.bytes + [3, 0, UInt8(name.utf8.count)] + Array(name.utf8)
    let tree = TreeID.derive(owner: owner, trunk: .outbox, appTreeID: name)
    #expect(tree == TreeID(labelledHash: "tree", input))
    #expect(ZoneID(trunkOf: tree).root.bytes == Array(tree.bytes.prefix(16)))
    #expect(Set(Trunk.allCases.map { TreeID.derive(owner: owner, trunk: $0, appTreeID: name) }).count == 4)
  }

  @Test func eTagsAreTheStartOfAHashAsText() {
    var generator = SeededGenerator(seed: 8)
    let record = NodeRecord(Samples.record(&generator, allFields: true))
    #expect(record.eTag == Bytes16<RecordHashRole>(prefixOf: record.hash).text)
    let content = Samples.content(&generator)
    let hash = ContentRoot(labelledHash: "etag", content.blobID.bytes + content.contentRoot.bytes)
    #expect(content.eTag == ZBase32.encode(hash.bytes.prefix(16)))
  }

  @Test func operationsHaveTheLengthOfTheirKind() {
    let put = ZoneOperation.Put(node: .zero, parent: .zero, record: .zero, keyGen: 1, parentKeyGen: 1)
    let operations: [(kind: UInt8, ZoneOperation)] = [
      (1, .put(put)), (2, .delete(node: .zero, record: .zero, liveDescendants: 0)), (3, .acl(version: 1, hash: .zero)),
      (4, .split(node: .zero, genesis: .zero, count: 1)), (8, .retireKey(user: .zero, gen: 2)),
      (10, .genesisState(ZoneOperation.GenesisState(parentHead: .zero, stateRoot: .zero, count: 1))),
    ]
    func length(_ operations: [ZoneOperation]) -> Int {
      ZoneCommit.Fields(
        zone: ZoneID(tree: .zero, root: .zero), seq: 1, prev: .zero, aclHash: .zero, writer: .zero, writerGen: 1,
        timeMs: 0, operations: operations
      ).unsignedBytes.count
    }
    for (kind, operation) in operations {
      #expect(ZoneOperation.length(ofKind: kind) == length([operation]) - length([]) - 1, "\(kind)")
    }
    #expect((0...UInt8.max).filter { ZoneOperation.length(ofKind: $0) != nil } == operations.map(\.kind))
  }
}
