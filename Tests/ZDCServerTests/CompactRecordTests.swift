import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// The stored form of a live node's record: smaller, and never another record.
@Suite struct CompactRecordTests {
  private struct Shape {
    var random: SeededRandom

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) } }
    mutating func oneIn(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }
    mutating func number() -> UInt64 {
      let bits = Int.random(in: 0...64, using: &random)
      return bits == 64 ? .random(in: 0 ... .max, using: &random) : .random(in: 0..<(1 << bits), using: &random)
    }

    mutating func record() -> NodeRecord {
      let author = NodeRecord.DataAuthor(writer: UserID(bytes(32))!, timeMs: number())
      let commitments = NodeRecord.ZoneCommitments(
        node: KeyCommitment(bytes(32))!, content: KeyCommitment(bytes(32))!)
      let content = NodeRecord.Content(
        dataVersion: number(), blobID: BlobID(bytes(16))!, cipherLength: 136 + number() % 34_359_738_000,
        contentRoot: ContentRoot(bytes(32))!)
      let hasContent = !oneIn(3)
      return NodeRecord(
        NodeRecord.Fields(
          tree: TreeID(bytes(32))!, node: NodeID(bytes(16))!, parent: NodeID(bytes(16))!, recordVersion: number(),
          prevRecord: oneIn(2) ? .zero : RecordHash(bytes(32))!, keyGen: UInt32(truncatingIfNeeded: number()),
          parentKeyGen: UInt32(truncatingIfNeeded: number()), parentWrap: bytes(oneIn(4) ? 0 : 104),
          historyWrap: bytes(oneIn(3) ? 150 : 0), nameTag: NameTag(bytes(16))!, isPointer: oneIn(5),
          commitments: oneIn(5) ? commitments : nil, content: hasContent ? content : nil,
          dataAuthor: hasContent && oneIn(3) ? author : nil, burnMs: oneIn(4) ? number() : nil,
          sealedPrivate: bytes(oneIn(9) ? 0 : Int(number() % 600)), writer: UserID(bytes(32))!,
          writerGen: UInt32(truncatingIfNeeded: number()), timeMs: number()))
    }
  }

  private static func context(_ fields: NodeRecord.Fields, timeMs: UInt64) -> RecordContext {
    let put = ZoneOperation.Put(
      node: fields.node, parent: fields.parent, record: .zero, keyGen: fields.keyGen, parentKeyGen: fields.parentKeyGen)
    return RecordContext(
      tree: fields.tree, put: put, writer: fields.writer, writerGen: fields.writerGen, timeMs: timeMs)
  }

  @Test func everyRecordComesOutAsItWentIn() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var shape = Shape(random: SeededRandom(seed: seed))
    for _ in 0..<2_000 {
      let record = shape.record()
      let context = Self.context(record.fields, timeMs: shape.oneIn(2) ? record.fields.timeMs : shape.number())
      let compact = CompactRecord(record.bytes, context: context)
      #expect(!compact.isWhole, "seed \(seed)")
      #expect(compact.bytes.count < record.bytes.count - 100, "seed \(seed)")
      #expect(try compact.record(context) == record.bytes, "seed \(seed)")
      #expect(try compact.nameTag() == record.fields.nameTag, "seed \(seed)")
      #expect(try compact.content() == record.fields.content, "seed \(seed)")
    }
  }

  /// Whatever is stored instead of a record, or with the commit of another one, comes out unchanged.
  @Test func whatIsNotTheRecordOfItsCommit_isStoredWhole() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var shape = Shape(random: SeededRandom(seed: seed))
    for _ in 0..<2_000 {
      let record = shape.record()
      let context = Self.context(record.fields, timeMs: record.fields.timeMs)
      var bytes = record.bytes
      let place = Int.random(in: bytes.indices, using: &shape.random)
      bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &shape.random)
      #expect(try CompactRecord(bytes, context: context).record(context) == bytes, "seed \(seed)")
      let cut = Array(record.bytes.prefix(place))
      #expect(try CompactRecord(cut, context: context).record(context) == cut, "seed \(seed)")
      var other = context
      other.put.parent = .random()
      let foreign = CompactRecord(record.bytes, context: other)
      #expect(try foreign.isWhole && foreign.record(other) == record.bytes, "seed \(seed)")
    }
  }

  /// A flipped bit is found by the hash or as a broken form; it never gives the record, and never traps.
  @Test func damageOfTheStoredForm_neverGivesTheRecord() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var shape = Shape(random: SeededRandom(seed: seed))
    for _ in 0..<100 {
      let record = shape.record()
      let context = Self.context(record.fields, timeMs: record.fields.timeMs)
      let stored = CompactRecord(record.bytes, context: context).bytes
      for place in stored.indices {
        var bytes = stored
        bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &shape.random)
        let rebuilt = try? CompactRecord(stored: bytes).record(context)
        #expect(rebuilt != record.bytes, "seed \(seed), byte \(place)")
        _ = try? CompactRecord(stored: Array(bytes.prefix(place))).record(context)
      }
    }
  }
}

private struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// The answers of a server with a damaged database.
@Suite(.needsFolder) struct DamagedRecordTests {
  /// - A byte of a live node's stored record changes
  /// => the record is in no answer, the log names the node, other records are served, and the node can be deleted
  @Test func aDamagedRecordIsNeverServed() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let (good, bad) = (zone.record(.random()), zone.record(.random()))
      try await server.put([good, bad], in: &zone, token: token)
      #expect(try await server.page(zone.zone, after: 0, token: token).items().count == 3)
      try TestServer.sql(
        """
        UPDATE nodes SET record = substr(record, 1, 99) || x'ffff' || substr(record, 102)
        WHERE id = (SELECT max(id) FROM nodes)
        """, in: server.folder)
      let page = try await server.page(zone.zone, after: 0, token: token)
      #expect(try page.outline() == "commit 1, record v1")
      #expect(server.log.text.contains(bad.fields.node.text))
      let path = Routes.path(Routes.records, zone.zone.tree.text, zone.zone.root.text)
      let names = [(bad.fields.node, bad.hash), (good.fields.node, good.hash)]
      let answer = try await server.send(.POST, path, token: token, body: TestServer.recordNames(names))
      #expect(try answer.outline() == "record v1")
      let none = try await server.send(
        .POST, path, token: token, body: TestServer.recordNames([(bad.fields.node, bad.hash)]))
      #expect((none.status, none.bytes.count) == (200, 0))
      let again = zone.record(bad.fields.node)
      let (_, body) = try zone.put([again])
      #expect(try await server.commit(body, token: token).status == 500)
      try await server.delete(bad.fields.node, in: &zone, token: token)
      #expect(
        try await server.send(
          .POST, path, token: token, body: TestServer.recordNames([(bad.fields.node, bad.hash)])
        ).bytes.isEmpty)
    }
    #expect(try DataFolder.check(path: folder).findings.map(\.kind) == [.record])
  }
}
